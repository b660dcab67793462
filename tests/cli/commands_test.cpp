// The whole way of the README: train, check, simulate, sweep.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTrace = GANYMEDE_SOURCE_DIR "/traces/recorded/mlp-gan-cpu.json";
constexpr const char* kStudy = GANYMEDE_SOURCE_DIR "/studies/first-look.json";

TEST(Commands, HelpStartsWithExamples) {
  for (const char* command : {"train", "calibrate", "simulate", "sweep", "doctor", "list", "example"}) {
    const Outcome help = run_program(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_LT(help.out.find(std::string("  ganymede ") + command), help.out.find("Usage:")) << command;
  }
}

TEST(Commands, ExamplesAreValid) {
  const Scratch scratch;
  const std::string scenario = scratch.write("scenario.json", run_program("example scenario").out);
  const std::string study = scratch.write("study.json", run_program("example study").out);
  const std::string platform = scratch.write("lab.json", run_program("example platform").out);
  const std::string trace = std::string(" --set /workload/trace=") + kTrace;
  EXPECT_EQ(run_program("simulate " + scenario + trace).code, 0);
  EXPECT_EQ(run_program("sweep " + study + trace).code, 0);
  const Outcome own =
      run_program("simulate " + scenario + trace + " --set /platform/catalog=" + platform +
                  " --set /platform/instance=node --set /platform/region=room-1 --set /platform/nodes=2 --format json");
  EXPECT_EQ(own.code, 0) << own.err;
  EXPECT_EQ(Json::parse(own.out)["run"]["gpus"], 8);
  // Replaces the example's target, because a scenario with two targets is refused.
  const Outcome steps = run_program("simulate " + scenario + trace +
                                    " --set /workload/epochs=null --set /workload/steps=20000 --format json");
  EXPECT_EQ(steps.code, 0) << steps.err;
  EXPECT_EQ(Json::parse(steps.out)["time"]["steps"], 20000);
  const Outcome unlike = run_program("allreduce --catalog " + platform +
                                     " --instance node,old-node --nodes 2,1 --scheme mixed,two-level --bytes 8205536");
  EXPECT_EQ(unlike.code, 0) << unlike.err;
}

TEST(Commands, ADescriptionCountsThePapersParameters) {
  const Outcome outcome = run_program("train --model mlp-gan --batch 64 --describe --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json description = Json::parse(outcome.out);
  EXPECT_EQ(description["parameters"]["generator"], 2051384);
  EXPECT_EQ(description["parameters"]["discriminator"], 233985);
  EXPECT_NEAR(description["flops_per_step"].get<double>() / 64, 0.015079e9, 1e3);
}

TEST(Commands, FromARealStepToABill) {
  const Scratch scratch;
  const std::string trace = (scratch / "trace.json").string();
  const Outcome train =
      run_program("train --model mlp-gan --steps 60 --batch 16 --seed 3 --trace " + trace + " --samples " +
                  (scratch / "samples.png").string() + " --weights " + (scratch / "gan.safetensors").string());
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("eigen"));
  EXPECT_THAT(content_of(scratch / "samples.png"), StartsWith("\x89PNG"));
  const Outcome bill = run_program(std::string("sweep ") + kStudy + " --set /workload/trace=" + trace +
                                   " --set /workload/batch_per_gpu=16 --format json");
  ASSERT_EQ(bill.code, 0) << bill.err;
  const Json runs = Json::parse(bill.out)["runs"];
  EXPECT_EQ(runs.size(), 4U * (1 + 2 * 3));  // one GPU has no scheme
  for (const auto& run : runs) {
    EXPECT_EQ(run["provenance"]["inputs"], "kernel model");
    EXPECT_EQ(run["time"]["images"], 60000 * 20);
    EXPECT_GT(std::stod(run["cost"]["total_usd"].get<std::string>()), 0);
  }
}

TEST(Commands, OneGpuIsTheSmallestInstance) {
  const Outcome outcome =
      run_program(std::string("sweep ") + kStudy + " --set /workload/trace=" + kTrace + " --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json sweep = Json::parse(outcome.out);
  EXPECT_EQ(sweep["runs"][0]["run"]["allocation"], "1 x p3.2xlarge");
  const std::string table = run_program(std::string("sweep ") + kStudy + " --set /workload/trace=" + kTrace).out;
  EXPECT_THAT(table, HasSubstr("cheapest"));
  EXPECT_THAT(table, HasSubstr("fastest"));
  EXPECT_THAT(table, HasSubstr("kernel model"));
  EXPECT_THAT(table, HasSubstr("use the site's"));  // what the catalog itself does not vouch for
}

TEST(Commands, TheSameBytesOnRepeatAndWithAnyNumberOfJobs) {
  const std::string command =
      std::string("sweep ") + kStudy + " --set /workload/trace=" + kTrace + " --format json --jobs ";
  const Outcome one = run_program(command + "1");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, run_program(command + "1").out);
  EXPECT_EQ(one.out, run_program(command + "2").out);
}

TEST(Commands, ResultsGoToAFileWhole) {
  const Scratch scratch;
  const std::string file = (scratch / "runs.csv").string();
  const Outcome outcome =
      run_program(std::string("sweep ") + kStudy + " --set /workload/trace=" + kTrace + " --format csv -o " + file);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string csv = content_of(file);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 28);
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(Commands, TheCheckReportsPredictionAndMeasurement) {
  NOT_SANITIZED("compares with times measured at full speed");
  // Whether the interval holds depends on the machine (exit code 0 or 1); both outcomes must be reported.
  const Scratch scratch;
  const std::string trace = (scratch / "trace.json").string();
  ASSERT_EQ(run_program("train --steps 60 --batch 16 --trace " + trace).code, 0);
  const Outcome outcome = run_program("calibrate --check " + trace + " --format json");
  ASSERT_THAT(outcome.code, testing::AnyOf(0, 1)) << outcome.err;
  const Json check = Json::parse(outcome.out);
  EXPECT_GT(check["measured_s"].get<double>(), 0);
  EXPECT_GT(check["predicted_s"].get<double>(), 0);
  EXPECT_EQ(outcome.code == 0, check["holds"].get<bool>());
}

TEST(Commands, DoctorAndListAnswer) {
  const Outcome doctor = run_program("doctor");
  EXPECT_EQ(doctor.code, 0);
  EXPECT_THAT(doctor.out, HasSubstr("cuda"));
  for (const char* scheme : {"ring", "hierarchical-copy", "reduce-to-one"})
    EXPECT_THAT(run_program("list schemes").out, HasSubstr(scheme));
  for (const char* provider : {"aws", "gcp", "azure", "private"})
    EXPECT_THAT(run_program("list providers").out, HasSubstr(provider));
  // The models that can be trained here, and those that `plan --model` takes besides.
  EXPECT_THAT(run_program("list models").out, testing::AllOf(HasSubstr("mlp-gan"), HasSubstr("stylegan2"),
                                                             HasSubstr("images of 256, 512, 1024 pixels a side")));
  // A summary that contains a comma must stay one cell.
  EXPECT_THAT(run_program("list providers --format csv").out,
              testing::AllOf(testing::StartsWith("name,summary\r\n"), HasSubstr("\r\naws,\"")));
  EXPECT_THAT(run_program("doctor --format csv").out,
              testing::AllOf(testing::StartsWith("part,found,detail\r\n"), HasSubstr("\r\ncuda backend,no,")));
  EXPECT_THAT(run_program("list markets").out, HasSubstr("on-demand"));
  EXPECT_THAT(run_program("list gpus").out, HasSubstr("132 multiprocessors"));
}

}  // namespace
}  // namespace ganymede::cli
