// `train --metrics` and `watch`: a real training beside a plan for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
class Watch : public testing::Test {
 protected:
  Watch() {
    const Outcome planned = run_program(
        "plan --model mlp-gan --images 6400 --batch 64 --catalog gcp --gpu A100 --max-gpus 1 --market on-demand"
        " --deadline 10h --quiet --save " +
        plan_);
    EXPECT_EQ(planned.code, 0) << planned.err;
  }
  Outcome train(const std::string& more = "") {
    return run_program("train --model mlp-gan --steps 100 --batch 64 --quiet --metrics " + log_ + more);
  }
  Outcome watch(const std::string& more = "") {
    return run_program("watch --plan " + plan_ + " --log " + log_ + " " + more);
  }
  /// Keeps the first `lines` of the log.
  void cut(int lines) {
    std::ifstream in(log_);
    std::string text, line;
    while (lines-- > 0 && std::getline(in, line)) text += line + "\n";
    in.close();
    std::ofstream(log_, std::ios::trunc) << text;
  }
  TemporaryFolder folder_;
  std::string plan_ = (folder_.path() / "plan.json").string(), log_ = (folder_.path() / "run.jsonl").string();
};

TEST_F(Watch, DevicesAndPipesAreNoLogs) {
  for (const std::string log : {"/dev/zero", "/dev/null"}) {
    const Outcome outcome = run_program("watch --plan " + plan_ + " --log " + log);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(log + ": is no regular file"));
  }
}

TEST_F(Watch, FollowsARealTraining) {
  NOT_SANITIZED("follows real trainings, whose steps take several times as long there");
  ASSERT_EQ(train(" --quality 128 --quality-every 40").code, 0);
  const Json now = Json::parse(watch("--format json").out);
  EXPECT_EQ(now["state"], "finished");
  EXPECT_EQ(now["steps_done"], 100);
  EXPECT_GT(now["paused_s"].get<double>(), 0);
  EXPECT_TRUE(now["step_is_measured"].get<bool>());
  EXPECT_EQ(now["time_s"]["median"], now["elapsed_s"]);
  EXPECT_NEAR(now["usd"]["median"].get<double>(), now["spent_usd"].get<double>(), 0.02);
  const Outcome text = watch();
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("step 100 of 100"), HasSubstr("finished"), HasSubstr("USD at the end")));
  cut(1);
  const Json begun = Json::parse(watch("--format json").out);
  EXPECT_EQ(begun["state"], "running");
  EXPECT_FALSE(begun["step_is_measured"].get<bool>());
  EXPECT_EQ(begun["decision"]["policy"], "fixed");
}

TEST_F(Watch, AResumedTrainingGoesOnInItsLog) {
  NOT_SANITIZED("follows real trainings, whose steps take several times as long there");
  const std::string checkpoint = " --checkpoint-every 20 --checkpoint " + (folder_.path() / "kept").string();
  ASSERT_EQ(train(checkpoint).code, 0);
  const Outcome more =
      run_program("train --model mlp-gan --steps 150 --batch 64 --quiet --resume --metrics " + log_ + checkpoint);
  ASSERT_EQ(more.code, 0) << more.err;
  const Json now = Json::parse(watch("--format json").out);
  EXPECT_EQ(now["resumptions"], 1);
  EXPECT_EQ(now["steps_done"], 150);
}

TEST_F(Watch, ServesMetrics) {
  NOT_SANITIZED("follows real trainings, whose steps take several times as long there");
  ASSERT_EQ(train().code, 0);
  cut(1);  // a run that goes on, so that the server does
  std::ofstream end(log_, std::ios::app);
  std::string metrics;
  const int port = 20000 + ::getpid() % 20000;  // tests run side by side
  std::thread client([&] {
    for (int i = 0; i < 2400 && metrics.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      httplib::Client http("127.0.0.1", port);
      if (const auto answer = http.Get("/metrics"); answer && answer->status == 200) metrics = answer->body;
    }
    end << R"({"end":"stopped","step":0,"unix_s":4000000000})" << std::endl;
  });
  const Outcome outcome = watch("--listen 127.0.0.1:" + std::to_string(port) + " --every 100ms");
  client.join();
  EXPECT_EQ(outcome.code, 4) << outcome.err;  // the last line is years behind the deadline
  EXPECT_THAT(outcome.out, HasSubstr("stopped"));
  EXPECT_THAT(
      metrics,
      AllOf(HasSubstr("# TYPE ganymede_run_steps_done gauge\n"),
            HasSubstr("ganymede_run_steps{model=\"mlp-gan\",instance=\"a2-highgpu-1g\"} 100\n"),
            HasSubstr("ganymede_run_forecast_usd{model=\"mlp-gan\",instance=\"a2-highgpu-1g\",quantile=\"0.95\"} ")));
}

TEST_F(Watch, BadInputIsLocated) {
  ASSERT_EQ(run_program("train --model mlp-gan --steps 4 --batch 64 --quiet --metrics " + log_).code, 0);
  EXPECT_EQ(watch("--listen 127.0.0.1:port").code, 2);
  EXPECT_EQ(watch("--every 0s").code, 2);
  std::ofstream(log_, std::ios::app) << R"({"step":3,"unix_s":4000000000})"
                                     << "\n";
  const Outcome backwards = watch();
  EXPECT_EQ(backwards.code, 2);
  EXPECT_THAT(backwards.err, AllOf(HasSubstr("run.jsonl: line"), HasSubstr("after the run's end")));
  ASSERT_EQ(run_program("train --model dcgan-28 --steps 2 --batch 2 --quiet --metrics " + log_).code, 0);
  EXPECT_THAT(watch().err, HasSubstr("a run of \"dcgan-28\", expected one of \"mlp-gan\""));
  log_ = (folder_.path() / "none").string();
  EXPECT_EQ(watch().code, 2);
  EXPECT_EQ(
      run_program("train --model mlp-gan --steps 2 --metrics " + (folder_.path() / "no/such.jsonl").string()).code, 2);
}

}  // namespace
}  // namespace ganymede::cli
