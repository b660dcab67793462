// The questions that take a file or two numbers: is it normal, why is it slow, which is best, what is cheaper.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Eight GPUs behind NVSwitch that reach 11 GB/s, as over host memory, or that many times as much.
std::string slow_log(double times = 1) {
  std::string text =
      "n:1:1 [0] NCCL INFO Channel 00 : 0[7000] -> 1[8000] via SHM/direct/direct\n"
      "# Collective test starting: all_reduce_perf\n";
  for (int rank = 0; rank < 8; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid 1 on node-a device {:2} [0x{:02x}] NVIDIA A100-SXM4-40GB\n", rank,
                        rank, rank);
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 8) {
    const double time = 40 + static_cast<double>(bytes) * 1.75 / (11 * times) * 1e-3,
                 rate = static_cast<double>(bytes) / time * 1e-3;
    text += fmt::format("{} {} float sum -1 {:.2f} {:.2f} {:.2f} 0\n", bytes, bytes / 4, time, rate, 1.75 * rate);
  }
  return text;
}

TEST(Verdicts, CheckSaysWhatIsWrongAndWhatWouldShowIt) {
  const TemporaryFolder folder;
  const std::string log = folder.add("run.log", slow_log()).string();
  const Outcome text = run_program("check nccl-log " + log);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Broken: "), HasSubstr("Likeliest: GPUs of a node do not reach each other"),
                              HasSubstr("The log says: n:1:1 [0] NCCL INFO Channel 00"), HasSubstr("p4d.24xlarge")));
  const Json json = Json::parse(run_program("check nccl-log " + log + " --format json").out);
  EXPECT_EQ(json["verdict"], "broken");
  EXPECT_EQ(json["causes"][0]["cause"], "no-p2p");
  EXPECT_THAT(run_program("check nccl-log " + log + " --format csv").out, HasSubstr("bytes,measured_s,expected_s"));
  EXPECT_THAT(run_program("check nccl-log " + log + " --nodes 3").err,
              HasSubstr("cannot be spread evenly over 3 nodes"));
  const Outcome other = run_program("check nccl-log " + folder.add("fast.log", slow_log(100)).string());
  EXPECT_THAT(other.out, HasSubstr("Faster than this machine should be"));
  std::string small = slow_log();
  small.erase(small.find("\n8388608 ") + 1);
  EXPECT_THAT(run_program("check nccl-log " + folder.add("small.log", small).string()).out,
              AllOf(HasSubstr("the largest size has"), HasSubstr("no size from 32 MiB on was measured")));
  EXPECT_EQ(run_program("check nccl-log " + log + " --catalog aws --instance p3.2xlarge").code, 2);
}

TEST(Verdicts, ChangedLogsEndWithAnAnswerOrAMessage) {
  NOT_SANITIZED("some hundred processes");
  const TemporaryFolder folder;
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    std::string text = slow_log();
    for (int k = 0; k < 4; ++k) text[random() % text.size()] = static_cast<char>(random() % 256);
    const Outcome outcome = run_program("check nccl-log " + folder.add("run.log", text).string() + " --format json");
    EXPECT_THAT(outcome.code, testing::AnyOf(0, 2, 3)) << outcome.err;
  }
}

TEST(Verdicts, WhySlowTakesTwoNumbers) {
  const Outcome text = run_program("why-slow --gpus 8 --one 250img/s --all 1200img/s --gpu V100");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Slow: 1200 images/s on 8 GPUs are 60.0 %"), HasSubstr("single-process")));
  const Json json = Json::parse(
      run_program("why-slow --gpus 8 --one 250 --all 1200 --gpu V100 --recipe stylegan2 --batch 8 --format json").out);
  EXPECT_EQ(json["schema"], "ganymede.why-slow/1");
  // The recipe trains 64 images a step on all GPUs.
  const std::string recipe = "why-slow --gpus 8 --one 45 --all 240 --gpu V100 --recipe 'stylegan2-ada?image=256'";
  EXPECT_EQ(Json::parse(run_program(recipe + " --format json").out)["batch"], 8);
  // A training that is faster than expected has parts of its step that are left, and none below nothing.
  const std::string fast = "why-slow --gpus 8 --one 250 --all 1990 --gpu V100";
  EXPECT_THAT(run_program(fast.substr(0, fast.find("1990")) + "4000 --gpu V100").out,
              HasSubstr("Faster than expected"));
  const Json answer = Json::parse(run_program(fast + " --format json").out);
  for (const Json& share : answer["shares"]) EXPECT_GE(share["share"].get<double>(), -1e-9) << share["part"];
  for (const char* bad :
       {"--gpus 8 --one 250", "--gpus 8 --one x --all 3 --gpu V100", "--one 3 --all 4 --gpu V100",
        "--gpus 8 --one 3 --all 4 --gpu nothing", "--gpus 8 --one 3 --all 4 --gpu V100 --model nothing"})
    EXPECT_EQ(run_program(std::string("why-slow ") + bad).code, 2) << bad;
}

// Wherever a number is asked for it may be written as a count.
TEST(Verdicts, CountsAreWrittenTheSameEverywhere) {
  const std::string forecast = "quality forecast --fid 20 --backbone stylegan2 --images ";
  const Outcome million = run_program(forecast + "2M");
  EXPECT_EQ(million.code, 0) << million.err;
  EXPECT_EQ(million.out, run_program(forecast + "2e6").out);
  EXPECT_EQ(run_program(forecast + "2Q").code, 2);
  const std::string slow = "why-slow --gpus 8 --one 250 --all 1200 --gpu V100 --format json --parameters ";
  EXPECT_EQ(Json::parse(run_program(slow + "1.5B").out)["parameters"], 1.5e9);
  EXPECT_EQ(run_program("fits dcgan --batch 2k --gpu V100").code, 0);
  EXPECT_EQ(run_program("fits dcgan --batch 2M --gpu V100").code, 2) << "beyond its bounds";
}

TEST(Verdicts, GpusAreNamedAsPeopleNameThem) {
  const Outcome fits = run_program("fits dcgan --gpu 'NVIDIA GeForce RTX 4090',a100-80gb");
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_THAT(fits.out, AllOf(HasSubstr("RTX4090"), HasSubstr("A100-80GB")));
  EXPECT_EQ(run_program("catalog --gpu 4090").out, run_program("catalog --gpu RTX4090").out);
  EXPECT_EQ(run_program("catalog --gpu 40").code, 2);
}

TEST(Verdicts, ALogOfAnAllToAllIsCheckedAndImported) {
  const TemporaryFolder folder;
  std::string text = "# Collective test starting: alltoall_perf\n";
  for (int rank = 0; rank < 8; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid 1 on node-a device {:2} [0x{:02x}] NVIDIA A100-SXM4-40GB\n", rank,
                        rank, rank);
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 8) {
    const double time = 30 + static_cast<double>(bytes) * 0.875 / 60 * 1e-3,
                 rate = static_cast<double>(bytes) / time * 1e-3;
    text += fmt::format("{} {} float none -1 {:.2f} {:.2f} {:.2f} 0\n", bytes, bytes / 32, time, rate, 0.875 * rate);
  }
  const std::string log = folder.add("alltoall.log", text).string(), overlay = (folder.path() / "o.json").string();
  const Json check = Json::parse(run_program("check nccl-log " + log + " --format json").out);
  EXPECT_EQ(check["collective"], "all-to-all");
  EXPECT_EQ(check["verdict"], "low");
  const Outcome import =
      run_program("import nccl-tests " + log + " --catalog aws --instance p4d.24xlarge -o " + overlay);
  ASSERT_EQ(import.code, 0) << import.err;
  // The measured sizes take the measured times.
  const Json rows = Json::parse(run_program("allreduce --catalog aws --instance p4d.24xlarge --overlay " + overlay +
                                            " --collective all-to-all --scheme nccl --bytes 8MiB --format json")
                                    .out);
  EXPECT_NEAR(rows[0]["time_s"].get<double>(), 30e-6 + 8388608 * 0.875 / 60e9, 1e-7);
}

TEST(Verdicts, ComparePutsMachinesSideBySide) {
  const std::string what = " --model layers:dcgan --batch 64 --images 1M --market on-demand --max-gpus 1 --seeds 1";
  const Outcome text = run_program("compare p3.2xlarge g4dn.xlarge gcp" + what);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("1 x p3.2xlarge"), HasSubstr("1 x g4dn.xlarge"), HasSubstr("gcp ")));
  const Json json = Json::parse(run_program("compare p3.2xlarge T4 --format json" + what).out);
  EXPECT_EQ(json["rows"][0]["row"]["instance"], "p3.2xlarge");
  EXPECT_EQ(json["rows"][1]["row"]["gpu"], "T4");
  // Paperspace has an instance type of this name, which is dearer than others with the GPU.
  const Json v100 = Json::parse(run_program("compare V100 --format json" + what).out);
  EXPECT_NE(v100["rows"][0]["row"]["provider"], "paperspace");
  // So many of a GPU, in three spellings.
  const std::string more = " --model layers:dcgan --batch 64 --images 1M --market on-demand --seeds 1 --format json";
  const Json several = Json::parse(run_program("compare 2xT4 T4x4 V100:8" + more).out);
  for (const auto& [row, gpus] : {std::pair{0, 2}, {1, 4}, {2, 8}})
    EXPECT_EQ(several["rows"][row]["row"]["gpus"], gpus) << several["rows"][row];
  EXPECT_EQ(run_program("compare 2xnothing" + more).code, 2);
  EXPECT_EQ(run_program("compare p3.2xlarge nothing" + what).code, 2);
  EXPECT_EQ(run_program("compare p3.2xlarge --budget 0.0001USD" + what).code, 3);
}

TEST(Verdicts, PlanLikeReadsWhatPeopleSubmit) {
  const TemporaryFolder folder;
  const std::string task =
      folder.add("task.yaml", "resources: {cloud: aws, accelerators: 'V100:1', use_spot: false}\nrun: x\n").string();
  const Outcome text = run_program("plan --like " + task);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("SkyPilot task: 1 x 1 V100"), HasSubstr("3.06 USD/h"), HasSubstr("Cheaper: ")));
  const Outcome training = run_program(
      "plan --like " + task + " --model layers:dcgan --batch 64 --images 1M --market on-demand --max-gpus 1 --seeds 1");
  EXPECT_EQ(training.code, 0) << training.err;
  EXPECT_THAT(training.out, AllOf(HasSubstr("as it asks"), HasSubstr("1 x p3.2xlarge"), HasSubstr("anything")));
  // Machines that no network joins are not what two nodes ask for.
  const Outcome nodes = run_program(
      "plan --like " + folder.add("job.sbatch", "#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:v100:4\n").string());
  EXPECT_EQ(nodes.code, 0) << nodes.err;
  EXPECT_THAT(nodes.out, testing::Not(HasSubstr("vast")));
  const Outcome shape = run_program(
      "plan --like " +
      folder.add("two.yaml", "num_nodes: 2\nresources: {cloud: aws, accelerators: 'V100:4'}\nrun: x\n").string() +
      " --model layers:dcgan --batch 64 --images 1M --seeds 1 --format json");
  EXPECT_EQ(shape.code, 0) << shape.err;
  const Outcome none = run_program(
      "plan --like " +
      folder.add("none.yaml", "num_nodes: 2\nresources: {cloud: aws, accelerators: 'A100:4'}\nrun: x\n").string() +
      " --model layers:dcgan --batch 64 --images 1M --seeds 1");
  EXPECT_THAT(none.out, HasSubstr("as it asks: no instance type that is searched makes 2 x 4 such GPUs"));
  const Json asked = Json::parse(shape.out)["rows"][0]["row"];
  EXPECT_EQ(asked["instance"], "p3.8xlarge") << "8 GPUs of one node are another cluster";
  EXPECT_EQ(asked["nodes"], 2);
  EXPECT_EQ(run_program("plan --like " + folder.add("empty.yaml", "a: b\n").string()).code, 2);
}

}  // namespace
}  // namespace ganymede::cli
