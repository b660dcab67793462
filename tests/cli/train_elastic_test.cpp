// A training whose number of processes a policy decides while it goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "common/json_value.hpp"
#include "lab.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
constexpr int kSteps = 12;
const std::string kOne =
    "train --quiet --model dcgan-28 --batch 16 --threads 1 --lr 1e-5 --epsilon 1e-4 --format json --steps ";
constexpr const char* kLauncher = " --launcher 'mpirun --oversubscribe --allow-run-as-root -n {}'";

class TrainElastic : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(GANYMEDE_MPI_MODULE) || std::system("command -v mpirun >/dev/null") != 0)
      GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  }
  /// Two hosts that boot in a second.
  std::string plan(const Json& changes) {
    Json document = {{"storage", {{"checkpoint", "disk"}}}, {"checkpoint", {{"every", "20ms"}, {"bytes", "4MB"}}}};
    document.merge_patch(changes);
    Json platform = lab_provisioning("1s", "0s", "1s", "1s");
    platform["instances"]["host"]["prices"] =
        Json::array({lab_price("on-demand", "1USD/h"), lab_price("spot", "1USD/h")});
    return write_lab(scratch, platform, document);
  }
  std::string elastic(const std::string& policy, const std::string& plan, int steps = kSteps) {
    return kOne + std::to_string(steps) + " --sync-batch-norm" + kLauncher + " --policy " + policy + " --plan " + plan +
           " --checkpoint " + (scratch / "run").string();
  }
  /// The last losses are those of one process that trained without a break, apart from rounding, which grows with the
  /// steps.
  static void expect_same_losses(const Json& report, int steps = kSteps) {
    const Outcome whole = run_program(kOne + std::to_string(steps));
    ASSERT_EQ(whole.code, 0) << whole.err;
    const Json expected = Json::parse(whole.out)["history"].back(), found = report["history"].back();
    EXPECT_EQ(found["step"], steps);
    for (const char* network : {"discriminator", "generator"})
      EXPECT_NEAR(found[network].get<double>(), expected[network].get<double>(),
                  1e-4 * steps / kSteps * std::abs(expected[network].get<double>()))
          << network;
  }

  const Scratch scratch;
};

// Two nodes, one after a third of the steps, and two again after two thirds.
TEST_F(TrainElastic, GoesOnWithAsManyProcessesAsThePolicyWants) {
  const std::string program = R"SH(while read -r line; do
  steps=$(echo "$line" | sed 's/.*"done":\([0-9]*\).*/\1/'); nodes=2
  [ "$steps" -ge 4 ] && nodes=1
  [ "$steps" -ge 8 ] && nodes=2
  echo "{\"nodes\": {\"host room on-demand\": $nodes}}"
done)SH";
  const std::string file = plan(
      {{"policy", {{"name", "external"}, {"command", {"bash", "-c", program}}, {"every", "50ms"}, {"limit", "60s"}}}});
  const Outcome outcome = run_program(elastic("external", file), "timeout 600");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out), &starts = result["starts"];
  ASSERT_GE(starts.size(), 2U);
  EXPECT_EQ(starts[0]["processes"], 2);
  EXPECT_EQ(starts[1]["processes"], 1);
  EXPECT_EQ(starts[0]["end"], "stopped");
  EXPECT_EQ(starts.back()["end"], "finished");
  for (std::size_t i = 1; i < starts.size(); ++i) EXPECT_EQ(starts[i]["from_step"], starts[i - 1]["to_step"]);
  EXPECT_EQ(result["life"]["time"]["steps"], kSteps);
  expect_same_losses(result["report"]);
}

TEST_F(TrainElastic, GoesOnAfterAKilledPeer) {
  const std::string file = plan({{"policy", {{"name", "fixed"}}}});
  // Kills the second process as soon as there is a checkpoint, once.
  const std::string launcher = scratch.write("kill_one.sh", R"SH(export GANYMEDE_TEST_MARK=$MARK
"$@" & command=$!
log=$MARK/run/training.jsonl
for _ in $(seq 1200); do
  kill -0 $command 2>/dev/null || break
  grep -q '"pause":"checkpoint"' $log 2>/dev/null && break
  sleep 0.1
done
for process in /proc/[0-9]*; do
  tr '\0' '\n' < $process/environ 2>/dev/null | grep -qx "GANYMEDE_TEST_MARK=$MARK" || continue
  tr '\0' '\n' < $process/environ 2>/dev/null | grep -qx OMPI_COMM_WORLD_RANK=1 || continue
  kill -9 ${process#/proc/} 2>/dev/null && break
done
wait $command
)SH");
  const Outcome outcome = run_program(
      elastic("fixed", file), "MARK=" + (scratch / "").parent_path().string() + " timeout 600 bash " + launcher);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out), &starts = result["starts"];
  ASSERT_EQ(starts.size(), 2U) << starts;
  EXPECT_EQ(starts[0]["end"], "rank 1 was lost");
  EXPECT_GT(starts[0]["to_step"], 0);
  EXPECT_EQ(starts[1]["from_step"], starts[0]["to_step"]);
  EXPECT_EQ(starts[1]["end"], "finished");
  EXPECT_EQ(result["life"]["life"]["losses"], 1);
  EXPECT_GT(result["life"]["gpu_seconds"]["lost"], 0);
  expect_same_losses(result["report"]);
}

// Two spot nodes, of which the provider announces that it takes one back; the policy asks for another.
TEST_F(TrainElastic, StopsBeforeANodeThatHasBeenGivenNoticeGoes) {
  // So many steps that the notice comes before their end on fast processors too.
  constexpr int kLong = 150;
  const Json notice = {{"at", "3s"}, {"kind", "interruption"}, {"nodes", 1}};
  const std::string file = plan({{"platform", {{"market", "spot"}, {"spot", "uninterrupted"}, {"notice", "2s"}}},
                                 {"policy", {{"name", "fixed"}}},
                                 {"checkpoint", {{"every", "300ms"}}},
                                 {"faults", {{"events", {notice}}}}});
  const Outcome outcome = run_program(elastic("fixed", file, kLong), "timeout 600");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out), &starts = result["starts"];
  std::vector<std::string> events;
  for (const Json& event : result["life"]["events"]) events.push_back(event["event"]);
  EXPECT_THAT(events, testing::IsSupersetOf({"notice", "lost"}));
  ASSERT_GE(starts.size(), 2U) << starts;
  // The processes stopped with a checkpoint while the node was still there: nothing is lost.
  EXPECT_EQ(starts[0]["processes"], 2);
  EXPECT_EQ(starts[0]["end"], "stopped");
  EXPECT_GT(starts[0]["to_step"], 0);
  EXPECT_EQ(starts[1]["from_step"], starts[0]["to_step"]);
  EXPECT_EQ(result["life"]["gpu_seconds"]["lost"], 0);
  EXPECT_EQ(starts.back()["end"], "finished");
  expect_same_losses(result["report"], kLong);
}

TEST_F(TrainElastic, RefusesWhatItCannotSteer) {
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run_program("train --model mlp-gan --batch 16 --steps 4 " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  const std::string file = plan(Json::object()), folder = " --checkpoint " + (scratch / "run").string();
  const std::string both = "--policy fixed --plan " + file;
  refused("--policy fixed" + folder, "--policy, --plan: expected both");
  refused("--plan " + file + folder, "--policy, --plan: expected both");
  refused(both, "--policy: expected --checkpoint too");
  refused(both + folder + " --resume", "--resume: found --policy too");
  refused(both + folder + " --launcher mpirun", "--launcher: found \"mpirun\", expected {} in it");
  refused("--policy nobody --plan " + file + folder, "nobody");
  refused("--policy fixed --plan missing.json" + folder, "missing.json");
  refused(both + folder + " --scale 0", "--scale");
}

}  // namespace
}  // namespace ganymede::cli
