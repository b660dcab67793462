// Words that people write for what the program calls otherwise: each is understood where only one thing can be meant,
// else the message says what to write, in the units of that place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
/// A plan that is made quickly: one instance type at one price.
constexpr const char* kWantedPlan =
    "plan --catalog aws --instance p3.2xlarge --region us-east-1 --market on-demand --max-gpus 1 "
    "--seeds 1 --format json ";

void expect_refused(const std::string& arguments, const std::string& message) {
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
}

Json request_of(const std::string& flags, const std::string& model = "dcgan-64") {
  const Outcome outcome = run_program(kWantedPlan + flags + " --model " + model);
  EXPECT_EQ(outcome.code, 0) << flags << "\n" << outcome.err;
  return outcome.code == 0 ? Json::parse(outcome.out)["request"] : Json();
}

TEST(Mistakes, ValuesThatAreNoIntegersAreToldWhatIsExpected) {
  const auto said = [](const std::string& arguments) {
    return run_program("generate --checkpoint x " + arguments).err;
  };
  EXPECT_THAT(said("--count x"), HasSubstr("--count: found x, expected a number"));
  EXPECT_THAT(said("--count 100000000000"), HasSubstr("--count: found 100000000000, expected a smaller integer"));
  EXPECT_THAT(said("--count 1e1"), HasSubstr("--count: found 1e1, expected a number that is written as an integer"));
  EXPECT_THAT(run_program("catalog --max-memory 99999999999GiB").err, HasSubstr("expected 64MiB to 1e9 GB"));
}

TEST(Mistakes, AMisspeltOptionNamesTheNearest) {
  expect_refused("plan --modle dcgan-64 --images 5000",
                 "ganymede: --modle: no such option, did you mean --model?; `ganymede plan --help` lists them\n");
  expect_refused("plan --modle=dcgan-64", "--modle: no such option, did you mean --model?");
  expect_refused("import layers --bach 4",
                 "--bach: no such option, did you mean --batch?; `ganymede import layers --help`");
  expect_refused("simulate s.json --intsance x", "did you mean --instance?");
  expect_refused("list schemes --jsno", "--jsno: no such option");
  expect_refused("-v", "ganymede: -v: no such option, did you mean --version?; `ganymede --help` lists them\n");
  expect_refused("-V", "did you mean --version?");
  expect_refused("plan -x", "-x: no such option; `ganymede plan --help`");
}

TEST(Mistakes, AWordForAQuestionLeadsToItsCommand) {
  for (const auto& [word, meant] : {std::pair("gpus", "list gpus"),
                                    {"price", "catalog"},
                                    {"cost", "plan"},
                                    {"fit", "fits"},
                                    {"bandwidth", "check nccl-log"},
                                    {"slow", "why-slow"}})
    expect_refused(word, std::string("did you mean \"") + meant + "\"?");
}

TEST(Mistakes, HelpIsACommandToo) {
  EXPECT_EQ(run_program("help").out, run_program("--help").out);
  const Outcome plan = run_program("help plan");
  EXPECT_EQ(plan.code, 0);
  EXPECT_EQ(plan.out, run_program("plan --help").out);
  EXPECT_EQ(run_program("help import layers").out, run_program("import layers --help").out);
  expect_refused("help pan", "did you mean \"plan\"?");
}

TEST(Mistakes, CountsMayBeShort) {
  for (const char* images : {"200000", "200k", "0.2M", "2e5", "200_000"})
    EXPECT_EQ(request_of(std::string("--images ") + images)["images"], 200'000) << images;
  EXPECT_EQ(request_of("--images 1 --set /workload/images=2e5")["images"], 200'000);
  for (const char* images : {"0", "-5", "50MB", "1.5", "1,500", "many"})
    expect_refused(std::string("plan --model dcgan-64 --images ") + images,
                   std::string("--images: found ") + images + ", expected a positive integer, such as 50000000 or 50M");
}

TEST(Mistakes, ADeadlineWithoutAUnitIsAsked) {
  const std::string plan = "plan --model dcgan-64 --images 5000 ";
  expect_refused(plan + "--deadline 60",
                 "ganymede: --deadline: found \"60\", which has no unit; write \"60h\" or \"60min\"\n");
  expect_refused(plan + "--deadline 60hours", "--deadline: \"60hours\" has the unit \"hours\", which is none of");
  expect_refused(plan + "--max-price-age 30", "--max-price-age: found \"30\", which has no unit; write \"30d\"");
  expect_refused(plan + "--checkpoint 10", "--checkpoint: found \"10\", which has no unit; write \"10min\" or \"10h\"");
  expect_refused(plan + "--step 0.9 --batch 16 --on V100",
                 "/workload/measured/step: found \"0.9\", which has no unit; write \"0.9s\" or \"0.9ms\"");
  const Scratch scratch;
  const std::string scenario = scratch.write("scenario.json", run_program("example scenario").out);
  expect_refused("simulate " + scenario + " --set /deadline=12",
                 "scenario.json: /deadline: found 12, which has no unit; write \"12h\" or \"12min\"");
}

TEST(Mistakes, AProbabilityMayBeAPercentage) {
  for (const char* certainty : {"0.95", "95%", "95.0%"})
    EXPECT_EQ(request_of(std::string("--images 200k --certainty ") + certainty)["certainty"], 0.95) << certainty;
  for (const char* certainty : {"95", "0", "0%", "101%", "nan", "%", "0.9x", "high"})
    expect_refused(std::string("plan --model dcgan-64 --images 200k --certainty ") + certainty,
                   std::string("--certainty: found ") + certainty +
                       ", expected a probability from 0.01 to 1, such as 0.95 or 95%");
}

TEST(Mistakes, MoneyMayBeWrittenWithASign) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  for (const char* budget : {"500USD", "'$500'", "'500$'", "'500 USD'", "'USD 500'", "500usd", "'$500.00'"})
    EXPECT_EQ(request_of(std::string("--images 200k --budget ") + budget)["budget_usd"], "500.00") << budget;
  const std::string plan = "plan --model dcgan-64 --images 5000 --budget ";
  expect_refused(plan + "500", "ganymede: --budget: found \"500\", expected an amount like \"500USD\"");
  expect_refused(plan + "500", "write \"500USD\"");
  expect_refused(plan + "'$1,500'", "--budget: found \"$1,500\"");
  expect_refused(plan + "500EUR", "--budget: found \"500EUR\"");
  expect_refused(plan + "'$'", "--budget: found \"$\"");
  expect_refused(plan + "-500USD", "--budget");
  expect_refused(plan + "3USD/h", "it is an amount, not a rate");
}

TEST(Mistakes, AnAmountMayRepeatWhatItIsFor) {
  const Scratch scratch;
  const std::string platform = run_program("example platform").out;
  const std::string scenario = scratch.write("scenario.json", run_program("example scenario").out);
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = platform;
    changed.replace(changed.find(old), old.size(), text);
    return "simulate " + scenario + " --format json --catalog " + scratch.write("lab.json", changed) +
           " --instance node --region room-1";
  };
  const Outcome plain = run_program(with("\"0.22USD\"", "\"0.22USD\""));
  const Outcome rate = run_program(with("\"0.22USD\"", "\"0.22USD/kWh\""));
  ASSERT_EQ(rate.code, 0) << rate.err;
  EXPECT_EQ(Json::parse(rate.out)["cost"], Json::parse(plain.out)["cost"]);
  EXPECT_EQ(run_program(with("\"3000USD\"", "\"3000USD/year\"")).code, 0);
  expect_refused(
      with("\"0.22USD\"", "\"0.22USD/MWh\""),
      "/regions/room-1/per_kwh: found \"0.22USD/MWh\", expected an amount like \"0.22USD\", zero or more, with "
      "at most six decimals; it is for one kWh, which may follow as \"/kWh\"");
  expect_refused(with("\"0.22USD\"", "0.22"), "found 0.22, expected an amount with its unit, such as \"0.22USD\"");
}

TEST(Mistakes, AListOfLayersIsAModelToPlanButNotToTrain) {
  for (const char* model : {"cyclegan", "layers:cyclegan"})
    EXPECT_EQ(request_of("--images 20k --batch 4", model)["model"], "cyclegan") << model;
  const std::string advice = "which can be planned (`ganymede plan --model biggan --images 10M`) but not trained";
  for (const char* command : {"train --steps 1", "calibrate -o trace.json"})
    for (const char* model : {"biggan", "layers:biggan"})
      expect_refused(std::string(command) + " --model " + model, advice);
  expect_refused("plan --trace biggan --images 5000", "did you mean \"layers:biggan\", which comes with the program?");
  expect_refused("plan --trace mlp-gan-cpu --images 5000", "did you mean \"recorded:mlp-gan-cpu\"");
  EXPECT_EQ(run_program("kernels --model layers:cyclegan --gpu V100 --batch 1").out,
            run_program("kernels --model cyclegan --gpu V100 --batch 1").out);
  EXPECT_EQ(run_program("import layers layers:vae").out, run_program("import layers vae").out);
  expect_refused("train --steps 1 --model bigan", "bigan");
}

TEST(Mistakes, ASchemaOrAPointerOfTheWrongKindIsRefusedAtItsPlace) {
  const TemporaryFolder folder;
  const std::string one = folder.add("one.json", R"({"schema": 1})");
  expect_refused("kernels --gpu A100 --model " + one, "one.json: /schema: found 1, expected \"ganymede.layers/1\"");
  Json study = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/infrastructure_survey/study.json"));
  study["claims"][0]["value"] = "time";
  expect_refused("validate " + folder.add("study.json", study.dump()).string(),
                 "/claims/0/value: found \"time\", expected a JSON pointer into a result");
}

TEST(Mistakes, ATraceOfJobsLeadsToItsImporter) {
  const Scratch scratch;
  expect_refused("simulate " + scratch.write("jobs.csv", "id,submit\n1,0\n"), "'ganymede import jobs'");
}

TEST(Mistakes, StudiesAreFilesOfAnyNameAndCountOnce) {
  const TemporaryFolder folder;
  const std::string file = folder.add("empty.csv", "").string();
  const Outcome inside = run_program("validate empty.csv", "cd " + file.substr(0, file.rfind('/')) + " &&");
  EXPECT_EQ(inside.code, 2);
  EXPECT_THAT(inside.err, AllOf(HasSubstr("empty.csv: "), Not(HasSubstr("there is no study"))));
  expect_refused("validate vtrain_v100 vtrain_v100", "the study vtrain_v100 is named twice, expected once");
  const std::string same = GANYMEDE_SOURCE_DIR "/studies/vtrain_v100/study.json";
  expect_refused("validate vtrain_v100 " + same,
                 "vtrain_v100 and " + same + " are the same study, expected one of them");
}

TEST(Mistakes, WithoutArgumentsAndATerminalNothingIsAsked) {
  const Outcome outcome = run_program("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("--help"));
}

TEST(Mistakes, ValuesThatNoToolWouldTake) {
  EXPECT_THAT(run_program("plan --model dcgan-64 --images 1M --gpu ,, --seeds 1").err,
              HasSubstr("--gpu ,,: found no value between the commas"));
  EXPECT_EQ(run_program("fits stylegan2 --gpu=,").code, 2);
  const TemporaryFolder folder;
  const std::string task =
      folder.add("task.yaml", "resources: {cloud: gcp, accelerators: 'tpu-v3-8'}\nrun: x\n").string();
  const Outcome tpu = run_program("plan --like " + task);
  EXPECT_EQ(tpu.code, 0) << tpu.err;
  EXPECT_THAT(tpu.out, HasSubstr("tpu-v3-8"));
  const std::string empty =
      folder.add("empty.xml", "<?xml version='1.0'?><platform version=\"4.1\"></platform>").string();
  const Outcome simgrid = run_program("import simgrid " + empty + " -o " + (folder / "out.json").string());
  EXPECT_EQ(simgrid.code, 2);
  EXPECT_THAT(simgrid.err, HasSubstr("empty.xml: has no <zone>"));
  const std::string result = folder.add("service.json", R"({"schema": "ganymede.service-result/1"})").string();
  EXPECT_THAT(
      run_program("report " + result + " -o " + (folder / "page.html").string()).err,
      HasSubstr("what a service of a generator comes to: ganymede simulate SERVICE.json --format json, which this "
                "command cannot take; expected \"ganymede.result/1\""));
  const std::string forecast = folder.add("forecast.json", R"({"schema": "ganymede.forecast/1"})").string();
  const std::string refused = run_program("report " + forecast + " -o " + (folder / "page.html").string()).err;
  EXPECT_THAT(refused,
              HasSubstr("a run beside its plan: ganymede watch --format json, which this command cannot take"));
  EXPECT_THAT(refused, testing::Not(HasSubstr("did you mean")));
}

}  // namespace
}  // namespace ganymede::cli
