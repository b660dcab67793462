#include "rehearsal/step_rehearsal.hpp"

#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "rehearsal/execution.hpp"
#include "rehearsal/local_hosts.hpp"

namespace ganymede::rehearsal {
namespace {

using Json = OrderedJson;

constexpr double kBackward = 20e-3, kUpdate = 2e-3;

calibration::StepPhase phase(const std::string& name, double seconds) {
  return {name, "generator", calibration::Stream::compute, {0}, {seconds}, {0}, 0};
}

/// Steps of 22 ms: a backward pass whose first bucket is ready in its middle and the second at its end, and an update.
StepPlan steps_with_buckets(int ranks, std::int64_t bytes, bool overlap) {
  StepPlan plan{.model = {}, .topology = sim::flat(ranks), .schedules = {}, .options = {.overlap = overlap}, .seed = 1};
  plan.model.phases = {phase("generator.backward", kBackward), phase("generator.update", kUpdate)};
  plan.model.buckets = {{"generator", bytes, 0, 0.5}, {"generator", bytes, 0, 1.0}};
  plan.model.tail_s = {0};
  plan.model.samples = 1;
  for (const auto& bucket : plan.model.buckets)
    plan.schedules.push_back(plan_for_processes(sim::parse_scheme("ring"), plan.topology, bucket.bytes));
  return plan;
}

Json rehearse(int ranks, const Ping& network, const StepPlan& plan) {
  const PlainFabric fabric(ranks, network);
  return Json::parse(
      run_on_hosts(ranks, {network.rate, network.latency}, false, [&](kernel::Messenger& messenger) -> std::string {
        Group group(messenger);
        return rehearse_steps({&plan, Seconds{0.3}, &fabric.graph()}, group).dump();
      }));
}

TEST(RehearseSteps, HideTheBucketThatIsReadyEarly) {
  // A ring of two sends half of a bucket in each of two rounds: 100 KB at 12.5 MB/s take 8 ms and two latencies.
  const Ping network{BytesPerSecond{12.5e6}, Seconds{0.5e-3}, BytesPerSecond{1e15}};
  const double reduction = 100e3 / 12.5e6 + 2 * 0.5e-3;
  const Json result = rehearse(2, network, steps_with_buckets(2, 100'000, true));
  EXPECT_EQ(result["ranks"], 2);
  EXPECT_GE(result["steps"], 5);
  // The first one, issued after 10 ms, is reduced by 19 ms; the second one is waited for.
  EXPECT_NEAR(result["predicted"]["exposed_communication_s"].get<double>(), reduction, 1e-6);
  EXPECT_NEAR(result["predicted"]["step_s"].get<double>(), kBackward + kUpdate + reduction, 1e-6);
  // The played steps take at least that: the phases are slept through and the network is never faster.
  EXPECT_GE(result["measured"]["step_s"].get<double>(), 0.99 * (kBackward + kUpdate + reduction));
  EXPECT_GE(result["measured"]["exposed_communication_s"].get<double>(), 0.9 * reduction);

  // Without overlap both are waited for.
  const Json bare = rehearse(2, network, steps_with_buckets(2, 100'000, false));
  EXPECT_NEAR(bare["predicted"]["exposed_communication_s"].get<double>(), 2 * reduction, 1e-6);
  EXPECT_GE(bare["measured"]["exposed_communication_s"].get<double>() + bare["measured"]["straggler_s"].get<double>(),
            0.9 * 2 * reduction);
}

TEST(PlainFabric, HasTheRateAndTheLatencyOfItsPing) {
  const PlainFabric fabric(3, {BytesPerSecond{1e6}, Seconds{4e-3}, BytesPerSecond{5e9}});
  const Ping found = stated_ping(fabric.graph());
  EXPECT_DOUBLE_EQ(found.rate.si, 1e6);
  EXPECT_DOUBLE_EQ(found.latency.si, 4e-3);
  EXPECT_DOUBLE_EQ(found.adding.si, 5e9);
}

}  // namespace
}  // namespace ganymede::rehearsal
