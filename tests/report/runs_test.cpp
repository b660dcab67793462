#include "report/runs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "sim/run/result.hpp"

namespace ganymede::report {
namespace {

using testing::HasSubstr;
using testing::Not;
struct Made {
  std::string platform, allocation;
  int gpus;
  double step_s, boot_s;
  std::int64_t micro_usd;
  std::int64_t steps = 1000;
};

/// A run whose GPUs compute four fifths of each step and wait for gradients in the rest.
Json made_up(const Made& made) {
  sim::Result result;
  result.platform = made.platform;
  result.market = "on-demand";
  result.allocation = made.allocation;
  result.gpu = "V100";
  result.scheme = made.gpus == 1 ? "none" : "ring";
  result.gpus = made.gpus;
  result.steps = made.steps;
  result.images = 60000;
  const Seconds training = static_cast<double>(made.steps) * Seconds{made.step_s};
  result.total = Seconds{made.boot_s} + training;
  result.step_mean = Seconds{made.step_s};
  result.interval_s = {0.5 * result.total.si, 2 * result.total.si};
  result.sampling_interval_s = result.interval_s;
  result.fidelity = "sampled";
  result.launch = {"mlp-gan", "fp32", "mnist", 64, 64, {}};
  const double trained_s = made.gpus * training.si;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::compute)] = 0.8 * trained_s;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::exposed_communication)] = 0.2 * trained_s;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::provisioning)] = made.gpus * made.boot_s;
  result.gpu_seconds.total = made.gpus * result.total.si;
  result.gpu_busy = result.gpu_seconds.share(GpuUse::compute);
  result.memory = Bytes{116e6};
  result.bill.items = {{"instance-hours", made.allocation, 1, "h", {made.micro_usd}, {made.micro_usd}}};
  result.usd = result.bill.total();
  result.cost_usd = {static_cast<double>(made.micro_usd) * 0.5e-6, static_cast<double>(made.micro_usd) * 2e-6};
  result.hash = "0123456789abcdef";
  result.seed = 1;
  result.inputs = "transferred";
  result.step_source = "transferred from a CPU";
  result.fabric_source = made.gpus == 1 ? "not used" : "datasheet";
  result.software = "ganymede 0.1.0 (eigen)";
  result.prices_as_of = "2026-07-20";
  result.warnings = {"beware of " + made.platform};
  return Json::parse(documents::result_text(result));
}

/// A sweep over two platforms. On "aws" the four GPUs come first; all runs train the same images.
Json sweep() {
  return {{"schema", "ganymede.sweep/1"},
          {"study", "made up"},
          {"runs",
           {made_up({"aws us-east-1", "1 x p3.8xlarge", 4, 4e-3, 60, 1'500'000}),
            made_up({"aws us-east-1", "1 x p3.2xlarge", 1, 10e-3, 60, 500'000}),
            made_up({"lab room", "1 x host", 1, 20e-3, 0, 300'000}),
            made_up({"lab room", "2 x host", 2, 16e-3, 0, 700'000})}}};
}

/// The first line that contains `text`.
std::string line_with(const std::string& all, const std::string& text) {
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);)
    if (line.find(text) != std::string::npos) return line;
  ADD_FAILURE() << "no line with " << text << " in\n" << all;
  return "";
}

TEST(SweepText, MarksTheCheapestAndTheFastest) {
  const std::string text = sweep_text(sweep());
  // With boot the runs take 64 s and 70 s on aws; in the lab they take 20 s and 16 s. The lowest cost is 0.30 USD.
  EXPECT_THAT(line_with(text, "1 x host"), HasSubstr("  <- cheapest  "));
  EXPECT_THAT(line_with(text, "2 x host"), HasSubstr("  <- fastest "));
  EXPECT_THAT(line_with(text, "1 x p3.2xlarge"), Not(HasSubstr("<-")));
  EXPECT_THAT(line_with(text, "1 x p3.8xlarge"), Not(HasSubstr("<-")));
}

TEST(SweepText, MarksOneRunThatIsBoth) {
  Json both = {{"schema", "ganymede.sweep/1"},
               {"study", "made up"},
               {"runs", {made_up({"lab room", "1 x host", 1, 20e-3, 0, 300'000})}}};
  EXPECT_THAT(line_with(sweep_text(both), "1 x host"), HasSubstr("  <- cheapest and fastest  "));

  // The assumptions about owning the machines are a note.
  both["runs"][0]["pools"] = Json::array({Json{{"owned", "8000 USD over 4 years at 100 % use, no staff, no boot"}}});
  EXPECT_THAT(line_with(sweep_text(both), "1 x host"),
              testing::EndsWith("  owned: 8000 USD over 4 years at 100 % use, no staff, no boot"));
}

// The base is the run with the fewest GPUs on the same platform, at any place in the list: 10 / 4 on aws, 20 / 16 in
// the lab.
TEST(SweepText, SpeedUpIsAgainstTheFewestGpus) {
  const std::string text = sweep_text(sweep());
  EXPECT_THAT(line_with(text, "1 x p3.8xlarge"), HasSubstr("  2.50  "));
  EXPECT_THAT(line_with(text, "1 x p3.2xlarge"), HasSubstr("  1.00  "));
  EXPECT_THAT(line_with(text, "1 x host"), HasSubstr("  1.00  "));
  EXPECT_THAT(line_with(text, "2 x host"), HasSubstr("  1.25  "));
}

// 2 GPUs train twice the images in the same number of equal steps.
TEST(SweepText, SpeedUpIsAtEqualImages) {
  Json content = sweep();
  content["runs"][3] = made_up({"lab room", "2 x host", 2, 20e-3, 0, 700'000});
  content["runs"][3]["time"]["images"] = 120000;
  EXPECT_THAT(line_with(sweep_text(content), "2 x host"), HasSubstr("  2.00  "));
}

TEST(SweepText, ShowsWhatARunComesTo) {
  const std::string line = line_with(sweep_text(sweep()), "2 x host");
  EXPECT_THAT(line, HasSubstr("16.0 s"));
  EXPECT_THAT(line, HasSubstr("8.0 s .. 32.0 s"));
  EXPECT_THAT(line, HasSubstr("80.0 %"));  // busy
  EXPECT_THAT(line, HasSubstr("20.0 %"));  // exposed
  EXPECT_THAT(line, HasSubstr("0.0089"));  // 2 x 16 s in GPU-hours
  EXPECT_THAT(line, HasSubstr("0.7000"));
}

TEST(SweepText, SaysOnceWhereTheNumbersComeFromAndWarns) {
  const std::string text = sweep_text(sweep());
  const std::string line = line_with(text, "Where the numbers come from");
  EXPECT_THAT(line, HasSubstr("transferred from a CPU"));
  EXPECT_THAT(line, HasSubstr("datasheet"));
  EXPECT_THAT(line, HasSubstr("2026-07-20"));
  EXPECT_EQ(text.find("transferred from a CPU"), text.rfind("transferred from a CPU"));
  EXPECT_THAT(text, HasSubstr("beware of aws us-east-1"));
  EXPECT_THAT(text, HasSubstr("beware of lab room"));
  EXPECT_EQ(text.find("beware of lab room"), text.rfind("beware of lab room"));
}

TEST(SweepCsv, HasOneLineARun) {
  const std::string csv = sweep_csv(sweep());
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_THAT(csv, testing::StartsWith("platform,market,allocation,gpu,gpus,scheme,seed,total_s,"));
  EXPECT_THAT(line_with(csv, "2 x host"),
              testing::StartsWith("lab room,on-demand,2 x host,V100,2,ring,1,16.0,8.0,32.0,0.016,"));
  EXPECT_THAT(line_with(csv, "2 x host"), HasSubstr(",0.70,transferred,0123456789abcdef"));
}

TEST(RunText, ShowsTimeBillAndGpuSeconds) {
  const std::string text = run_text(made_up({"lab room", "2 x host", 2, 16e-3, 4, 700'000}));
  EXPECT_THAT(text, testing::StartsWith("lab room, 2 x host: 2 x V100, scheme ring\n"));
  EXPECT_THAT(line_with(text, "time"), HasSubstr("20.0 s"));
  EXPECT_THAT(line_with(text, "cost"), HasSubstr("0.70 USD"));
  EXPECT_THAT(line_with(text, "step  "), HasSubstr("16 ms"));
  EXPECT_THAT(line_with(text, "1000 steps"), HasSubstr("60000 images"));
  // 40 GPU-seconds, of which 25.6 compute.
  EXPECT_THAT(line_with(text, "compute"), testing::ContainsRegex("25\\.6 +64\\.0 %"));
  EXPECT_THAT(line_with(text, "provisioning"), testing::ContainsRegex("8\\.0 +20\\.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("straggler")));  // there was none
  EXPECT_THAT(line_with(text, "instance-hours"), HasSubstr("2 x host"));
  EXPECT_THAT(text, HasSubstr("beware of lab room"));
  EXPECT_THAT(text, Not(HasSubstr("energy of the GPUs")));  // the platform stated no power
}

TEST(RunText, NumbersBeyondIntegersAreRefused) {
  const Json run = made_up({"lab room", "1 x host", 1, 20e-3, 0, 1});
  for (const char* pointer : {"/run/gpus", "/time/steps", "/time/images"})
    for (const Json& number : {Json(1e300), Json(-1e300), Json("many")}) {
      Json other = run;
      other[JsonPointer(pointer)] = number;
      EXPECT_THROW((void)run_text(other), ConfigError) << pointer << number;
    }
  Json other = run;
  other[JsonPointer("/run/gpus")] = std::int64_t{1} << 40U;
  EXPECT_THROW((void)run_text(other), ConfigError);
}

TEST(SweepText, WithoutARunSaysSo) {
  const Json sweep = {{"schema", "ganymede.sweep/1"}, {"study", "s"}, {"runs", Json::array()}};
  EXPECT_EQ(sweep_text(sweep, 80), "No run.\n");
}

TEST(RunText, LongTimesAreAClock) {
  EXPECT_THAT(run_text(made_up({"lab room", "1 x host", 1, 3.7, 23, 1})), HasSubstr("1:02:03"));
}

TEST(RunCsv, HasOneLine) {
  const std::string csv = run_csv(made_up({"lab room", "1 x host", 1, 20e-3, 0, 300'000}));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
}

}  // namespace
}  // namespace ganymede::report
