// Logs of trainings: as the model of quality takes them, and whether a run that writes one may be dead.

#include "plan/recorded_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/errors.hpp"
#include "plan/watch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::plan {
namespace {

using testing::HasSubstr;

TEST(RecordedRuns, AreReadFromARunLogWithQuality) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "run.jsonl").string();
  std::ofstream(file)
      << R"({"schema":"ganymede.run-log/1","model":"dcgan-64","device":"cpu","gpus":1,"batch":64,"steps":1000,"unix_s":1000})"
      << "\n"
      << R"({"quality":{"fid":50,"inception_score":2,"reference":"test 100"},"step":10,"unix_s":1001})"
      << "\n";
  traces::QualityLog given;
  given.facts["dataset"] = "CIFAR10";
  const RecordedRuns recorded = read_recorded_runs(file, {}, given);
  ASSERT_EQ(recorded.runs.size(), 1U);
  EXPECT_EQ(recorded.runs[0].points.at(0).images, 640);
  EXPECT_EQ(recorded.runs[0].points.at(0).fid, 50);
  EXPECT_EQ(&chosen_run(recorded.runs, "", file), recorded.runs.data());
  EXPECT_THAT(message_of<ConfigError>([&] { chosen_run(recorded.runs, "dcgan-6", file); }),
              HasSubstr("did you mean \"dcgan-64\"?"));
  given.facts["reference"] = "test 200";
  EXPECT_THAT(message_of<ConfigError>([&] { read_recorded_runs(file, {}, given); }),
              HasSubstr("FIDs against different references cannot be compared"));
}

// Ten lines, one each 5 s: after a minute, or 20 times the time of a step where that is longer, it may be dead.
TEST(SilentSeconds, AreThoseOfARunThatMayBeDead) {
  RunLog log;
  log.begin_unix_s = 1000;
  for (int step = 1; step <= 10; ++step) log.steps.push_back({step, 1000 + 5.0 * step});
  log.last_unix_s = 1050;
  EXPECT_EQ(silent_seconds(log, 1050 + 100), std::nullopt);
  EXPECT_EQ(silent_seconds(log, 1050 + 101), 101);
  log.end = "stopped";
  EXPECT_EQ(silent_seconds(log, 1050 + 101), std::nullopt);
}

}  // namespace
}  // namespace ganymede::plan
