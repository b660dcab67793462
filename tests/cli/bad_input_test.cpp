// Every bad input gives one clear message that names the place, exit code 2, and no output file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;

/// Expects exit code 2, one line on stderr that contains all `parts`, and nothing on stdout.
void expect_rejected(const std::string& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  for (const auto& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part)) << arguments;
}

/// Arguments that simulate the committed example with the options in `more`.
std::string simulate(const Scratch& scratch, const std::string& more) {
  const Outcome example = run_program("example scenario");
  return "simulate " + scratch.write("scenario.json", example.out) +
         " --set /workload/trace=" GANYMEDE_SOURCE_DIR "/traces/recorded/mlp-gan-cpu.json " + more;
}

TEST(BadInput, TheUnchangedExampleIsGood) {
  const Scratch scratch;
  const Outcome outcome = run_program(simulate(scratch, ""));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(BadInput, FilesThatAreMissingEmptyOrNotJson) {
  const Scratch scratch;
  expect_rejected("simulate " + (scratch / "none.json").string(), {"none.json", "No such file"});
  expect_rejected("simulate " + scratch.write("empty.json", ""), {"empty.json", "empty"});
  expect_rejected("simulate " + scratch.write("half.json", "{ \"schema\": \"ganymede.scen"),
                  {"half.json", "line 1, column"});
  expect_rejected("sweep " + scratch.write("list.json", "[1, 2]"), {"list.json: /:", "an object"});
  expect_rejected("simulate " + scratch.write("nan.json", "{ \"seed\": NaN }"), {"nan.json", "line 1, column"});
}

TEST(BadInput, KeysThatAreUnknownOrTwice) {
  const Scratch scratch;
  expect_rejected(simulate(scratch, "--set /synchronization/sheme=ring"),
                  {"scenario.json: /synchronization/sheme: unknown key", "\"scheme\""});
  expect_rejected("simulate " + scratch.write("twice.json", R"({ "seed": 1, "seed": 2 })"),
                  {"twice.json: /seed: duplicate key"});
}

TEST(BadInput, NestingAndOverridesBeyondReason) {
  const Scratch scratch;
  expect_rejected("simulate " + scratch.write("deep.json", std::string(200'000, '[') + std::string(200'000, ']')),
                  {"deep.json", "200 levels"});
  expect_rejected(simulate(scratch, "--set /gpus/2000000000=1"), {"--set /gpus/2000000000=1", "index"});
  expect_rejected(simulate(scratch, "--set \"/workload/dataset/name=$(printf '\\377')\""),
                  {"--set /workload/dataset/name=", "UTF-8"});
}

TEST(BadInput, FlagsThatAreNotUtf8) {
  const std::string bad = " \"$(printf 'a\\377')\"";
  for (const char* flag : {"--region", "--instance", "--catalog", "--scheme"})
    expect_rejected("simulate scenario.json " + std::string(flag) + bad,
                    {std::string("ganymede: ") + flag + " a\\xff: is not UTF-8"});
  expect_rejected("plan --model" + bad + " --images 1M", {"--model a\\xff: is not UTF-8"});
  expect_rejected("why" + bad, {"a\\xff: is not UTF-8"});
}

TEST(BadInput, EscapeSequencesAreShownAsText) {
  const std::string clear = " \"$(printf 'x\\033[2J')\"";
  for (const char* command : {"example", "report", "simulate", "help", "train --dataset", "train --activations",
                              "catalog --gpu", "simulate s.json --fidelity"}) {
    const Outcome outcome = run_program(command + clear);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err.find('\033'), std::string::npos) << command;
    EXPECT_THAT(outcome.err, HasSubstr("x\\u001b[2J")) << command;
  }
}

// The journal's errors were ignored: a sweep on a full disk lost its results when it was killed.
TEST(BadInput, AJournalThatCannotBeWrittenEndsASweep) {
  const Scratch scratch;
  const std::string out = (scratch / "out.json").string();
  // A file may have 1 KiB, which is less than a result: as on a full disk.
  const Outcome outcome = run_program("sweep " GANYMEDE_SOURCE_DIR "/studies/first-look.json --set /gpus=[1] -o " + out,
                                      "sh -c 'ulimit -f 1; trap \"\" XFSZ; exec \"$@\"' sh");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("out.json.partial: cannot be written: File too large"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

// The signal of the limit ended the program, and the temporary file stayed.
TEST(BadInput, AFileBeyondTheLimitIsAnErrorAndLeavesNothing) {
  const Scratch scratch;
  const std::string out = (scratch / "plan.json").string();
  const Outcome outcome = run_program("schema plan -o " + out, "sh -c 'ulimit -f 1; exec \"$@\"' sh");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(out).parent_path()));
}

TEST(BadInput, OfAPlansFlags) {
  const std::string plan = "plan --model dcgan-64 --images 5000000 ";
  expect_rejected(plan + "--deadline 60h --checkpoint foo", {"--checkpoint", "\"foo\""});
  for (const char* value : {"0", "-1", "1.5", "x"})
    expect_rejected(plan + "--batch " + value,
                    {std::string("--batch: found ") + value + ", expected a positive integer"});
}

TEST(BadInput, NumbersAndUnits) {
  const Scratch scratch;
  for (const char* value : {"0", "-1", "1.5", "65537", "\\\"two\\\"", "1e400"})
    expect_rejected(simulate(scratch, std::string("--set /platform/nodes=") + value),
                    {"scenario.json: /platform/nodes: found", "an integer from 1 to 65536"});
  expect_rejected(simulate(scratch, "--set /workload/batch_per_gpu=0"), {"/workload/batch_per_gpu: found 0"});
  expect_rejected(simulate(scratch, "--set /workload/epochs=-3"), {"/workload/epochs: found -3"});
  expect_rejected(simulate(scratch, "--set /workload/dataset/images=0"), {"/workload/dataset/images: found 0"});
  expect_rejected(simulate(scratch, "--set /seed=-1"), {"/seed: found -1"});

  std::string platform = run_program("example platform").out;
  const std::string bandwidth = "\"100Gbit/s\"";
  platform.replace(platform.find(bandwidth), bandwidth.size(), "100");
  const std::string file = scratch.write("lab.json", platform);
  expect_rejected(simulate(scratch, "--set /platform/catalog=" + file +
                                        " --set /platform/instance=node --set /platform/region=room-1"),
                  {"lab.json: /instances/node/nic/bandwidth: found the bare number 100", "\"25Gbit/s\""});
}

TEST(BadInput, QuantitiesThatNoMachineHas) {
  const Scratch scratch;
  const std::string platform = run_program("example platform").out;
  const auto with = [&](const std::string& old, const std::string& replacement) {
    std::string changed = platform;
    changed.replace(changed.find(old), old.size(), replacement);
    return simulate(scratch,
                    "--set /platform/catalog=" + scratch.write("lab.json", changed) +
                        " --set /platform/instance=node --set /platform/region=room-1 --set /platform/nodes=2");
  };
  expect_rejected(with("\"5us\"", "\"1e308s\""), {"lab.json: /instances/node/nic/latency: found \"1e308s\""});
  expect_rejected(with("\"100Gbit/s\"", "\"1e-300B/s\""),
                  {"lab.json: /instances/node/nic/bandwidth: found \"1e-300B/s\""});
  expect_rejected(with("\"700W\"", "\"1e308W\""), {"/power/peak"});
  expect_rejected(simulate(scratch, "--set /platform/nodes=20000"),
                  {"scenario.json: /platform: found 20000 nodes", "at most 65536 GPUs"});
}

TEST(BadInput, MessageFidelityOfTooMuchIsRefused) {
  const Scratch scratch;
  const Outcome outcome = run_program(simulate(scratch, "--fidelity message --set /workload/epochs=1000000"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("scenario.json: /fidelity/mode: of "));
  EXPECT_THAT(outcome.err, HasSubstr("more than 50,000,000 messages would be simulated, "));
}

// Whatever its results will take is said before the first run, not after minutes.
TEST(BadInput, ASweepWhoseResultsDoNotFitIsRefused) {
  const std::string sweep =
      "sweep " GANYMEDE_SOURCE_DIR "/studies/first-look.json --set '/seeds={\"first\":1,\"count\":";
  const Outcome outcome = run_program(sweep + "100000}'");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("first-look.json: /seeds: the results of 2,800,000 runs, without --shard, would "
                                     "take about"));
  const Outcome shard =
      run_program(sweep + "270000}' --max-memory 900MiB --shard 0/1 -o " + (Scratch() / "s").string());
  EXPECT_EQ(shard.code, 3);
  EXPECT_THAT(shard.err, HasSubstr("/seeds: a study of 9,720,000 runs would take about"));
}

TEST(BadInput, ALinkThatLeadsToItself) {
  const Scratch scratch;
  std::filesystem::create_symlink("loop", scratch / "loop");
  const std::string loop = (scratch / "loop").string();
  for (const std::string& command : {"merge " + loop, "validate " + loop, "simulate " + loop})
    expect_rejected(command, {"loop", "symbolic links"});
}

TEST(BadInput, AnInputIsNotOverwritten) {
  const Scratch scratch;
  const std::string command = simulate(scratch, "-o " + (scratch / "scenario.json").string());
  const std::string before = content_of(scratch / "scenario.json");
  expect_rejected(command, {"scenario.json: is the input too"});
  EXPECT_EQ(content_of(scratch / "scenario.json"), before);
}

TEST(BadInput, AStderrThatIsClosedIsNoCrash) {
  EXPECT_EQ(std::system(GANYMEDE_BINARY " simulate none.json 2>&-") >> 8, 2);
  EXPECT_EQ(std::system(GANYMEDE_BINARY " simulate none.json 2>/dev/full") >> 8, 2);
}

TEST(BadInput, NamesThatDoNotExist) {
  const Scratch scratch;
  expect_rejected(simulate(scratch, "--set /platform/catalog=asw"), {"/platform/catalog", "\"aws\""});
  expect_rejected(simulate(scratch, "--set /platform/instance=p3.3xlarge"),
                  {"/platform/instance", "p3.3xlarge", "\"p3.2xlarge\""});
  expect_rejected(simulate(scratch, "--set /platform/region=us-east-9"),
                  {"/platform/region", "us-east-9", "us-east-1"});
  expect_rejected(simulate(scratch, "--set /platform/market=sport"), {"/platform/market", "\"spot\""});
  expect_rejected(simulate(scratch, "--set /synchronization/scheme=rong"),
                  {"/synchronization/scheme: found \"rong\"", "did you mean \"ring\""});
  expect_rejected(simulate(scratch, "--set /platform/gpus_per_node=5"),
                  {"/platform/gpus_per_node: found 5", "at most 4"});
  expect_rejected("train --model mlp-gam --steps 1", {"mlp-gam", "mlp-gan"});
  expect_rejected("train --steps 1 --backend cuda", {"cuda"});
  expect_rejected("list shemes", {"schemes"});
  expect_rejected("frobnicate", {"frobnicate"});
  expect_rejected("--no-color -q sweeep", {"no command \"sweeep\"", "did you mean \"sweep\"?"});
  expect_rejected("--formatt json list schemes", {"--formatt"});
}

TEST(BadInput, TrainingThatCannotStart) {
  const Scratch scratch;
  for (const char* flags :
       {"--steps 0", "--steps -1", "--steps 1 --batch 0", "--steps 1 --batch -64", "--steps 1 --batch 1000000",
        "--steps 1 --lr nan", "--steps 1 --lr -1", "--steps 1 --beta1 1.5", "--steps x"})
    EXPECT_EQ(run_program(std::string("train ") + flags).code, 2) << flags;
}

std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const auto word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((word >> shift) & 0xFFU);
  return bytes;
}

TEST(BadInput, DataThatContradictsItself) {
  const Scratch scratch;
  const std::string pixels(100 * 28 * 28, '\x40');
  const auto train = [&](const std::string& content) {
    scratch.write("train-images-idx3-ubyte", content);
    return "train --steps 1 --batch 10 --dataset " + (scratch / "").string();
  };
  EXPECT_EQ(run_program(train(big_endian({0x803, 100, 28, 28}) + pixels)).code, 0);
  expect_rejected(train(""), {"train-images-idx3-ubyte"});
  expect_rejected(train(big_endian({0x803, 100})), {"train-images-idx3-ubyte"});
  expect_rejected(train(big_endian({0x803, 100, 28, 28}) + pixels.substr(1)), {"train-images-idx3-ubyte"});
  expect_rejected(train(big_endian({0x803, 99, 28, 28}) + pixels), {"train-images-idx3-ubyte"});
  expect_rejected(train(big_endian({0x801, 100, 28, 28}) + pixels), {"train-images-idx3-ubyte", "803"});
  expect_rejected(train(big_endian({0x803, 0, 28, 28})), {"train-images-idx3-ubyte"});
  expect_rejected(train(big_endian({0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}) + pixels), {"train-images-idx3-ubyte"});
  expect_rejected("train --steps 1 --dataset " + (scratch / "nowhere").string(), {"nowhere"});
}

TEST(BadInput, AnOutputThatCannotBeWrittenIsFoundBeforeTheWork) {
  const Scratch scratch;
  const std::string nowhere = (scratch / "missing/file").string();
  for (const char* flag : {"--samples ", "--weights ", "--trace "})
    expect_rejected(std::string("train --steps 100000 ") + flag + nowhere, {nowhere});
  expect_rejected(simulate(scratch, "-o " + nowhere), {nowhere});
  expect_rejected("calibrate --steps 100000 -o " + nowhere, {nowhere});
  expect_rejected("example study -o " + (scratch / "").string(), {"is a directory"});
  expect_rejected("example study -o -", {"standard output is /dev/stdout"});
  EXPECT_EQ(scratch.files(), 1U) << "only the scenario may lie there";
}

TEST(BadInput, TracesThatContradictThemselves) {
  const Scratch scratch;
  expect_rejected(simulate(scratch, "--set /workload/trace=" + (scratch / "gone.json").string()),
                  {"/workload/trace", "gone.json"});
  std::string trace = content_of(GANYMEDE_SOURCE_DIR "/traces/recorded/mlp-gan-cpu.json");
  const std::size_t wall = trace.find("\"wall_s\":[") + 10;
  trace.insert(wall, "0.001,");
  const std::string file = scratch.write("trace.json", trace);
  expect_rejected(simulate(scratch, "--set /workload/trace=" + file),
                  {"trace.json: /batches/0/phases/0/start_s", "one a step"});
}

TEST(BadInput, ARunThatDoesNotFitTheMemoryIsInfeasible) {
  const Scratch scratch;
  std::string platform = run_program("example platform").out;
  platform.replace(platform.find("80GiB"), 5, "16MiB");
  const std::string file = scratch.write("lab.json", platform);
  const Outcome outcome = run_program(simulate(
      scratch, "--set /platform/catalog=" + file + " --set /platform/instance=node --set /platform/region=room-1"));
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("GPU memory"));
}

}  // namespace
}  // namespace ganymede::cli
