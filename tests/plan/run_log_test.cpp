// The log of a training under way: as it grows, after a crash, and of other programs.

#include "plan/run_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/errors.hpp"
#include "plan/forecast.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kHeader =
    R"({"schema":"ganymede.run-log/1","model":"dcgan-64","device":"cpu","gpus":1,"batch":64,"steps":1000,"unix_s":1000})";

class RunLogs : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }
  std::string refused(const std::string& lines) {
    std::ofstream(file_, std::ios::trunc) << kHeader << "\n" << lines << "\n";
    return message_of<ConfigError>([&] { RunLogReader(file_).read(); });
  }
  RunLog read() {
    RunLogReader reader(file_);
    reader.read();
    return reader.log();
  }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "run.jsonl";
};

TEST_F(RunLogs, AreReadAsTheyGrow) {
  append(std::string(kHeader) + "\n{\"step\":10,\"unix_s\":1001}\n{\"step\":20,\"un");
  RunLogReader reader(file_);
  EXPECT_EQ(reader.read(), 2);
  EXPECT_EQ(reader.log().done(), 10);
  EXPECT_EQ(reader.read(), 0);
  append("ix_s\":1002}\n");
  EXPECT_EQ(reader.read(), 1);
  EXPECT_EQ(reader.log().done(), 20);
  EXPECT_EQ(reader.log().last_unix_s, 1002);
  std::ofstream(file_, std::ios::trunc) << kHeader;
  EXPECT_THAT(message_of<ConfigError>([&] { reader.read(); }), HasSubstr("has become shorter"));
}

TEST_F(RunLogs, ErrorsNameTheLine) {
  EXPECT_THAT(refused(R"({"step":10,"unix_s":-1})"), HasSubstr("run.jsonl: line 2: /unix_s"));
  EXPECT_THAT(refused("{\"step\":10,\"unix_s\":1001}\n{\"step\":9,\"unix_s\":1002}"),
              AllOf(HasSubstr("line 3: /step"), HasSubstr("goes backwards")));
  EXPECT_THAT(refused(R"({"step":1001,"unix_s":1001})"), HasSubstr("at most the 1000"));
  EXPECT_THAT(refused(R"({"stepp":1,"unix_s":1001})"), HasSubstr("line 2"));
  EXPECT_THAT(refused("step 1 of 1000"), HasSubstr("line 2"));
  EXPECT_THAT(refused(R"({"step":1,"unix_s":1760000000000})"), HasSubstr("/unix_s"));
  EXPECT_THAT(refused(R"({"end":"perhaps","step":1,"unix_s":1001})"), HasSubstr("finished"));
  EXPECT_THAT(
      refused(R"({"schema":"ganymede.run-log/1","model":"other","gpus":1,"batch":64,"steps":1000,"unix_s":1001})"),
      HasSubstr("began as \"dcgan-64\""));
  EXPECT_THAT(refused(std::string(100000, 'x')), HasSubstr("longer than"));
  EXPECT_THAT(refused("{\"end\":\"finished\",\"step\":9,\"unix_s\":1001}\n{\"step\":10,\"unix_s\":1002}"),
              AllOf(HasSubstr("line 3"), HasSubstr("after the run's end")));
  EXPECT_THAT(refused(R"({"pause":"checkpoint","seconds":500,"step":1,"unix_s":1001})"),
              AllOf(HasSubstr("line 2"), HasSubstr("a pause of 500 s within the 1 s")));
  EXPECT_THAT(message_of<ConfigError>([&] { RunLogReader(folder_.path()).read(); }), HasSubstr("is a directory"));
  EXPECT_THAT(message_of<ConfigError>([&] { RunLogReader(folder_.path() / "none").read(); }),
              HasSubstr("cannot be read"));
}

TEST_F(RunLogs, GoOnAfterAnInterruption) {
  append(std::string(kHeader) + "\n{\"step\":100,\"unix_s\":1100}\n{\"step\":150,\"unix_s\":1150}\n");
  append(
      R"({"schema":"ganymede.run-log/1","model":"dcgan-64","gpus":1,"batch":64,"steps":1000,"first_step":100,"unix_s":1500})"
      "\n{\"step\":200,\"unix_s\":1600}\n");
  const RunLog log = read();
  EXPECT_EQ(log.resumptions, 1);
  ASSERT_EQ(log.pauses.size(), 1U);
  EXPECT_EQ(log.pauses[0].seconds, 350);
  const RunForecast now = forecast(log, {});
  // The rate is one step a second in both parts; neither the gap nor the lost steps slow it.
  EXPECT_NEAR(now.step_s, 1, 1e-12);
  EXPECT_NEAR(now.total_s.median, 600 + 800, 1e-9);
  EXPECT_EQ(now.paused_s, 350);
}

TEST_F(RunLogs, AClockThatIsSetBackMovesTheTimesBeforeIt) {
  append(std::string(kHeader) + "\n{\"step\":100,\"unix_s\":1100}\n{\"step\":200,\"unix_s\":1200}\n");
  append("{\"step\":200,\"unix_s\":700}\n{\"step\":300,\"unix_s\":800}\n");
  const RunLog log = read();
  EXPECT_EQ(log.begin_unix_s, 500);
  EXPECT_EQ(log.last_unix_s, 800);
  EXPECT_EQ(log.done(), 300);
  EXPECT_NEAR(forecast(log, {}).total_s.median, 1000, 1e-9);  // the rate is one step a second throughout
}

// 1,000 steps in 20 minutes; those between the lines about the change of summer time took a time that nobody knows.
TEST_F(RunLogs, StepsWhileAClockIsSetBackAreNotInThePace) {
  std::ofstream(file_) << "2026-10-25 01:50:00 step 1000\n2026-10-25 01:10:00 step 2000\n"
                          "2026-10-25 01:30:00 step 3000\n";
  RunLogReader foreign(file_, {1, 100'000, 1});
  foreign.read();
  EXPECT_EQ(foreign.log().done(), 3000);
  EXPECT_NEAR(forecast(foreign.log(), {}).step_s, 1.2, 1e-9);
  std::ofstream(file_, std::ios::trunc) << kHeader << "\n{\"step\":100,\"unix_s\":1200}\n"
                                        << "{\"step\":200,\"unix_s\":700}\n{\"step\":300,\"unix_s\":900}\n";
  EXPECT_NEAR(forecast(read(), {}).step_s, 2, 1e-9);
}

TEST_F(RunLogs, ATrainerStateOfARunUnderWayHasNoTimeYet) {
  std::ofstream(file_) << "{\"log_history\": [{\"loss\": 2.0, \"step\": 100}, {\"eval_fid\": 40.5, \"step\": 100}]}\n";
  EXPECT_THAT(message_of<ConfigError>([&] {
                RunLogReader(file_, {16, 20'000, 2}).read();
              }),
              AllOf(HasSubstr("has no time yet: 2 records have a step"), HasSubstr("\"train_runtime\""),
                    Not(HasSubstr("expected a ganymede.run-log/1"))));
}

// The header of a run that goes on stands behind half a line, because logs were once appended to as they were.
TEST_F(RunLogs, ALineThatACrashCutIsSkippedAndCounted) {
  const std::string resumed =
      R"({"schema":"ganymede.run-log/1","model":"dcgan-64","gpus":1,"batch":64,"steps":1000,"first_step":100,"unix_s":1500})";
  for (const std::string between : {"", "\n"}) {
    std::ofstream(file_, std::ios::trunc) << kHeader << "\n{\"step\":100,\"unix_s\":1100}\n{\"step\":150,\"un"
                                          << between << resumed << "\n{\"step\":200,\"unix_s\":1600}\n";
    const RunLog log = read();
    EXPECT_EQ(log.cut_lines, 1) << between;
    EXPECT_EQ(log.resumptions, 1);
    EXPECT_EQ(log.done(), 200);
  }
}

// A loss of power leaves zeros in the place of what was not on the disk yet, also of the first line.
TEST_F(RunLogs, ZerosAreSkippedAndCounted) {
  const std::string resumed =
      R"({"schema":"ganymede.run-log/1","model":"dcgan-64","gpus":1,"batch":64,"steps":1000,"first_step":100,"unix_s":1500})";
  for (const std::string& before : {std::string(kHeader) + "\n{\"step\":100,\"unix_s\":1100}\n", std::string()})
    for (const std::string between : {"", "\n"}) {
      std::ofstream(file_, std::ios::trunc)
          << before << std::string(3000, '\0') << between << resumed << "\n{\"step\":200,\"unix_s\":1600}\n";
      const RunLog log = read();
      EXPECT_EQ(log.cut_lines, 1) << between;
      EXPECT_EQ(log.done(), 200);
    }
}

// A disk that was full when the run began has a part of its first line.
TEST_F(RunLogs, AFirstLineThatWasCutIsSkippedAndCounted) {
  const std::string header = kHeader;
  for (std::size_t length = 1; length < header.size(); length += 7) {
    std::ofstream(file_, std::ios::trunc) << header.substr(0, length) << "\n"
                                          << header << "\n{\"step\":200,\"unix_s\":1600}\n";
    for (RunLogReader reader : {RunLogReader(file_), RunLogReader(file_, {16, 20'000, 2})}) {
      reader.read();
      EXPECT_EQ(reader.log().cut_lines, 1) << length;
      EXPECT_EQ(reader.log().done(), 200);
    }
  }
}

// Ticks of StyleGAN at 73 s a thousand images, an evaluation after the first: of 20,000 images 8,000 are done.
TEST_F(RunLogs, OfStyleGanAreThoseOfThePlannedTraining) {
  append(
      "tick 0     kimg 0.0      time 45s          sec/tick 10.6    sec/kimg 1326.39 maintenance 34.6 \n"
      "tick 1     kimg 4.0      time 13m 25s      sec/tick 292.0   sec/kimg 73.00   maintenance 468.0\n"
      "tick 2     kimg 8.0      time 18m 17s      sec/tick 292.0   sec/kimg 73.00   maintenance 0.1  \n");
  RunLogReader reader(file_, {16, 20'000, 2});
  EXPECT_EQ(reader.read(), 3);
  EXPECT_EQ(reader.read(), 0);
  const RunLog log = reader.log();
  EXPECT_EQ(log.batch, 16);
  EXPECT_EQ(log.gpus, 2);
  EXPECT_EQ(log.planned, 1250);
  EXPECT_EQ(log.done(), 500);
  const RunForecast now = forecast(log, {});
  EXPECT_NEAR(now.step_s, 73.0 * 16 / 1000, 1e-9);
  EXPECT_NEAR(now.paused_s, 468, 1e-9);
  EXPECT_NEAR(now.total_s.median, 468 + 73.0 * 20, 1e-6);
  append("tick 3     kimg 20.0     time 32m 53s      sec/tick 292.0   sec/kimg 73.00   maintenance 0.1  \n");
  EXPECT_EQ(reader.read(), 1);
  EXPECT_EQ(reader.log().end, "finished");
  std::ofstream(file_, std::ios::trunc) << "what is this\n";
  EXPECT_THAT(message_of<ConfigError>([&] {
                RunLogReader(file_, {16, 20'000, 2}).read();
              }),
              AllOf(HasSubstr("run.jsonl: expected a ganymede.run-log/1, StyleGAN's"),
                    HasSubstr("lines that begin with a time"), HasSubstr("a CSV with a column of steps")));
}

}  // namespace
}  // namespace ganymede::plan
