// Whole lives, played with real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "lab.hpp"
#include "schema_faults.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
/// Begins a script that starts the command of its arguments and waits until three nodes train, which are six processes.
const std::string kUntilThreeTrain = R"SH("$@" & command=$!
children() { cat /proc/$command/task/$command/children; }
for _ in $(seq 600); do
  kill -0 $command 2>/dev/null || break
  [ "$(children | wc -w)" -ge 6 ] && break
  sleep 0.1
done
)SH";

class RehearseLife : public testing::Test {
 protected:
  void SetUp() override { NOT_SANITIZED("what is rehearsed is paced by real time"); }
  /// Three hosts at 500 Mbit/s that boot in 30 s; a restart takes 10 s, a checkpoint 2 s, and the steps some 240 s.
  std::string scenario(const Json& changes) {
    Json platform = lab_provisioning("20s", "10s", "8s", "2s");
    platform["instances"]["host"] = {
        {"nic", {{"bandwidth", "500Mbit/s"}}},
        {"prices", Json::array({lab_price("on-demand", "3USD/h"), lab_price("spot", "1USD/h")})}};
    Json document = {{"workload", {{"steps", 2500}}},
                     {"platform", {{"nodes", 3}}},
                     {"storage", {{"checkpoint", "disk"}}},
                     {"checkpoint", {{"every", "20s"}, {"bytes", "200MB"}}}};
    document.merge_patch(changes);
    return write_lab(scratch, platform, document);
  }
  Json play(const std::string& file, const std::string& arguments = "") {
    const Outcome outcome =
        run_program("rehearse " + file + " --life --hosts 4 --network paced --for 8s " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
  static std::vector<std::string> events(const Json& result) {
    std::vector<std::string> out;
    for (const Json& event : result["events"])
      if (event["event"] != "checkpoint") out.push_back(event["event"]);
    return out;
  }
  static double total_s(const Json& result) { return result["time"]["total_s"].get<double>(); }
  static Json fault(const char* at, const char* kind) { return {{"at", at}, {"kind", kind}, {"nodes", 1}}; }

  const Scratch scratch;
};

TEST_F(RehearseLife, PlaysACrashAndAStragglerAsTheyAreSimulated) {
  Json straggler = fault("150s", "straggler");
  straggler.update({{"factor", 2}, {"for", "20s"}});
  const std::string file = scenario({{"faults", {{"events", {fault("70s", "crash"), straggler}}}}});
  const std::string study = (scratch / "study.json").string();
  const Json result = play(file, "-o " + study);
  ASSERT_FALSE(result.is_null());
  EXPECT_EQ(events(result["measured"]), events(result["predicted"]));
  EXPECT_EQ(result["measured"]["time"]["steps"], 2500);
  EXPECT_TRUE(result["decisions"]["same"].get<bool>());
  // Three nodes, and one in place of the crashed one; the training was started, and started again from a checkpoint.
  EXPECT_EQ(result["processes"]["nodes_started"], 4);
  EXPECT_EQ(result["processes"]["nodes_killed"], 1);
  EXPECT_EQ(result["processes"]["trainings_started"], 2);
  EXPECT_GE(result["processes"]["checkpoints_written"], 3);
  EXPECT_EQ(result["processes"]["checkpoints_read"], 1);
  EXPECT_GT(result["measured"]["gpu_seconds"]["lost"], 0);
  // Nothing ends before it is due, and no played step before its phases have been slept through.
  EXPECT_GE(result["measured"]["gpu_seconds"]["provisioning"].get<double>(),
            0.999 * result["predicted"]["gpu_seconds"]["provisioning"].get<double>());
  EXPECT_GT(result["measured"]["gpu_seconds"]["compute"], 0);
  for (const char* which : {"predicted", "measured"}) {
    double sum = 0;
    for (const auto& [use, seconds] : result[which]["gpu_seconds"].items())
      if (use != "total") sum += seconds.get<double>();
    EXPECT_NEAR(sum, result[which]["gpu_seconds"]["total"].get<double>(), 1e-6);
  }

  EXPECT_EQ(faults("rehearsal", result), "");
  for (const char* which : {"predicted", "measured"}) EXPECT_EQ(faults("result", result[which]), "") << which;
  const std::string life = scratch.write("life.json", result.dump());
  const Outcome page = run_program("report " + life);
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* part : {"Both timelines", "The predicted life over the measured one", "Events, measured", "crashed"})
    EXPECT_THAT(page.out, HasSubstr(part));
  const Outcome trace = run_program("export perfetto " + life);
  ASSERT_EQ(trace.code, 0) << trace.err;
  for (const char* process : {"predicted", "measured"}) EXPECT_THAT(trace.out, HasSubstr(process));

  const Outcome validated = run_program("validate " + study + " --format json");
  ASSERT_EQ(validated.code, 0) << validated.err;
  const Json cell = Json::parse(validated.out)["studies"][0]["cells"][0];
  EXPECT_EQ(cell["what"], "time");
  EXPECT_NEAR(cell["measured"].get<double>(), result["measured"]["time"]["total_s"].get<double>(), 1e-6);
  EXPECT_NEAR(cell["predicted"].get<double>(), result["predicted"]["time"]["total_s"].get<double>(), 1e-6);
}

// The policy asks for another node as soon as it hears of the notice.
TEST_F(RehearseLife, LetsThePolicyAnswerANotice) {
  const std::string file = scenario({{"platform", {{"market", "spot"}, {"spot", "uninterrupted"}, {"notice", "20s"}}},
                                     {"policy", {{"name", "fixed"}}},
                                     {"faults", {{"events", {fault("75s", "interruption")}}}}});
  const Json result = play(file);
  ASSERT_FALSE(result.is_null());
  for (const char* event : {"notice", "lost", "restored", "finished"})
    EXPECT_THAT(events(result["measured"]), testing::Contains(event));
  EXPECT_TRUE(result["decisions"]["same"].get<bool>());
  EXPECT_EQ(result["processes"]["notices_heard"], 1);
  // On a machine that is busy otherwise, a step may last longer than the notice.
  if (total_s(result["measured"]) < 1.25 * total_s(result["predicted"])) {
    EXPECT_EQ(events(result["measured"]), events(result["predicted"]));
  }
}

TEST_F(RehearseLife, TakesAKilledProcessForACrashAndLeavesNoneBehind) {
  const std::string file = scenario(Json::object());
  // Once three nodes train, which are six processes, somebody kills the first one. None of them outlives the command.
  const std::string launcher = scratch.write("kill_one.sh", kUntilThreeTrain + R"SH(sleep 0.5
all=$(children)
kill -9 ${all%% *}
wait $command; code=$?
for child in $all; do kill -0 $child 2>/dev/null && exit 77; done
exit $code
)SH");
  const Outcome outcome =
      run_program("rehearse " + file + " --life --hosts 4 --network paced --for 8s --format json", "bash " + launcher);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_THAT(events(result["measured"]), testing::Contains("crashed"));
  EXPECT_THAT(events(result["predicted"]), testing::Not(testing::Contains("crashed")));
  EXPECT_EQ(result["measured"]["time"]["steps"], 2500);
}

TEST_F(RehearseLife, ANodeThatDiesWhileItBootsIsReplaced) {
  // The three nodes boot for a second and more before any of them trains.
  const std::string launcher = scratch.write("kill_booting.sh", R"SH("$@" & command=$!
children() { cat /proc/$command/task/$command/children; }
for _ in $(seq 600); do
  kill -0 $command 2>/dev/null || break
  [ "$(children | wc -w)" -ge 3 ] && break
  sleep 0.01
done
[ "$(children | wc -w)" -eq 3 ] || exit 76
all=$(children)
kill -9 ${all%% *}
wait $command
)SH");
  const Outcome outcome =
      run_program("rehearse " + scenario(Json::object()) + " --life --hosts 4 --network paced --for 8s --format json",
                  "bash " + launcher);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out), found = events(result["measured"]);
  EXPECT_THAT(events(result["measured"]), testing::Contains("crashed"));
  // It crashed before anything trained.
  const auto& states = found.elements();
  EXPECT_LT(std::find(states.begin(), states.end(), "crashed"), std::find(states.begin(), states.end(), "running"));
  EXPECT_EQ(result["processes"]["nodes_started"], 4);
  EXPECT_EQ(result["measured"]["time"]["steps"], 2500);
}

TEST_F(RehearseLife, LeavesNoProcessBehindWhenItIsAskedToEndOrKilled) {
  const std::string file = scenario(Json::object());
  for (const auto& [signal, code] : {std::pair{"TERM", 130}, std::pair{"KILL", 128 + SIGKILL}}) {
    const std::string launcher = scratch.write("end_it.sh", kUntilThreeTrain + R"SH(all=$(children)
[ "$(echo $all | wc -w)" -ge 6 ] || exit 76
kill -)SH" + signal + R"SH( $command
wait $command; code=$?
for _ in $(seq 100); do
  alive=0
  for child in $all; do grep -q '^State:.[^ZX]' /proc/$child/status 2>/dev/null && alive=1; done
  [ $alive = 0 ] && exit $code
  sleep 0.1
done
exit 77
)SH");
    const Outcome outcome =
        run_program("rehearse " + file + " --life --hosts 4 --network paced --for 20s", "bash " + launcher);
    EXPECT_EQ(outcome.code, code) << outcome.err;
  }
}

TEST_F(RehearseLife, RefusesWhatItCannotPlay) {
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run_program("rehearse " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  const std::string file = scenario(Json::object()), life = file + " --life";
  refused(life, "--life: expected --hosts N beside it");
  refused(life + " --hosts 2", "found 3 GPUs, expected at most 2");
  refused(life + " --hosts 3 --for 10ms", "too coarse for a life");
  refused(life + " --hosts 3 --set /platform/nodes=65536", "found 65536 GPUs, expected at most 3");
  refused(life + " --hosts 3 --set /synchronization/mode=gossip", "/synchronization/mode");
  refused(life + " --hosts 3 --set /storage/dataset=disk", "/storage/dataset");
  refused(life + " --hosts 3 --compute real", "--compute: found real, expected replay");
  refused(file + " --hosts 3 --scale 0.5", "expected 1 or more, except with --life");
}

}  // namespace
}  // namespace ganymede::cli
