#pragma once
// A scenario, a context and states of a run as literals, for tests of single transitions: no file is read, and no steps
// are simulated. One-GPU nodes cost 3.60 USD/h (0.001 USD a second) and boot for 90 s; a step takes 10 ms with any
// number of nodes.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/run/run_record.hpp"
#include "sim/run/run_state.hpp"

namespace ganymede::sim {

inline constexpr Nanoseconds kSecond = 1'000'000'000;

inline std::shared_ptr<const platforms::Platform> literal_platform() {
  platforms::Platform platform;
  platform.provider = "private";
  platform.name = "lab";
  platforms::Gpu gpu;
  gpu.name = gpu.family = "GPU-X";
  gpu.memory = Bytes{16e9};
  gpu.fp32 = FlopsPerSecond{10e12};
  gpu.idle = Watts{50};
  gpu.peak = Watts{250};
  platform.gpus = {gpu};
  platforms::Instance instance;
  instance.name = "one";
  instance.gpu = "GPU-X";
  instance.gpus = 1;
  instance.vcpus = 8;
  platform.instances = {instance};
  platforms::Region region;
  region.name = "room-1";
  region.carbon = GramsPerKwh{400};
  region.pue = 1.5;
  platform.regions = {region};
  platform.provisioning.boot.median = Seconds{90};
  platform.billing.minimum = Seconds{60};
  return std::make_shared<const platforms::Platform>(platform);
}

inline ScenarioPool literal_pool(const std::string& name, int nodes, int most = 8) {
  ScenarioPool pool;
  pool.name = name;
  pool.platform = literal_platform();
  pool.pool = {.instance = "one",
               .region = "room-1",
               .market = platforms::Market::on_demand,
               .nodes = nodes,
               .gpus_per_node = 1};
  pool.max_nodes = most;
  pool.price.per_hour = MicroUsdPerHour{3'600'000};
  return pool;
}

/// 1,000 steps on the nodes of one pool under the policy "fixed".
inline Scenario literal_scenario(int nodes = 2) {
  Scenario scenario;
  scenario.file = "scenario.json";
  traces::StepTrace trace;
  trace.precision = "fp32";
  trace.batches.resize(1);
  trace.batches.front().batch = 64;
  scenario.trace = std::make_shared<const traces::StepTrace>(trace);
  scenario.stages = {0};
  scenario.stage_shares = {1};
  scenario.synchronization.scheme = parse_scheme("ring");
  scenario.dataset.images = 60'000;
  scenario.steps = 1'000;
  scenario.pools = {literal_pool("pool", nodes)};
  scenario.policy.policy = policies::find_policy("fixed");
  scenario.seed = 1;
  return scenario;
}

/// A checkpoint every 100 steps that takes a second to write and half a second to read.
inline void add_checkpoints(Scenario& scenario) {
  platforms::Storage disk;
  disk.name = "disk";
  disk.read = BytesPerSecond{96e6};
  disk.write = BytesPerSecond{48e6};
  scenario.checkpoints.every = Checkpoints::Every::interval;
  scenario.checkpoints.interval = Seconds{1};
  scenario.checkpoints.bytes = Bytes{48e6};
  scenario.checkpoints.storage = disk;
}

inline Lifetimes exponential_lifetimes(Seconds mean) {
  Lifetimes lifetimes;
  lifetimes.mean = mean;
  lifetimes.source = "the scenario";
  return lifetimes;
}

/// Steps of 10 ms on one-GPU nodes: 8 ms of computing and 2 ms of exposed communication.
inline StepDistribution literal_steps(const std::vector<int>& nodes) {
  StepDistribution steps;
  steps.mean = steps.low = steps.high = Seconds{10e-3};
  for (const int nodes_of_pool : nodes) {
    const double count = nodes_of_pool;
    steps.workers += nodes_of_pool;
    steps.pools.push_back({.compute = count * Seconds{8e-3},
                           .exposed = count * Seconds{2e-3},
                           .straggler = {},
                           .stall = {},
                           .lost = {},
                           .device = count * Seconds{8e-3}});
  }
  steps.images = 64.0 * steps.workers;
  return steps;
}

/// A run of a literal scenario between two events.
class RunInTheMiddle {
 public:
  explicit RunInTheMiddle(Scenario literal)
      : scenario(std::move(literal)),
        context{.scenario = scenario,
                .steps_of = [this](const Configuration& configuration) -> const StepDistribution& {
                  return distributions_.try_emplace(configuration, literal_steps(configuration.nodes)).first->second;
                },
                .measured_error = [](std::size_t, std::size_t) { return 0.0; },
                .pool_speeds = std::vector<double>(scenario.pools.size(), 1),
                .stage_ends = {static_cast<double>(scenario.steps)},
                .target = static_cast<double>(scenario.steps)},
        state(initial_state(scenario)) {
    for (const ScenarioPool& pool : scenario.pools) state.decision.nodes.push_back(pool.pool.nodes);
  }
  RunInTheMiddle(const RunInTheMiddle&) = delete;
  RunInTheMiddle& operator=(const RunInTheMiddle&) = delete;

  std::size_t add_queued(std::size_t pool = 0) { return state.fleet.add(pool, state.now); }
  std::size_t add_waiting(std::size_t pool = 0) {
    const std::size_t node = add_queued(pool);
    state.fleet.wait(node);
    return node;
  }
  std::size_t add_booting(std::size_t pool = 0) {
    const std::size_t node = add_queued(pool);
    state.fleet.grant(node, state.now, 90 * kSecond);
    return node;
  }
  std::size_t add_ready(std::size_t pool = 0) {
    const std::size_t node = add_booting(pool);
    state.fleet.make_ready(node, state.now);
    return node;
  }
  const Node& node(std::size_t index) const { return state.fleet[index]; }

  Scenario scenario;
  RunContext context;
  RunState state;

 private:
  std::map<Configuration, StepDistribution> distributions_;
};

/// The only scheduled event of a type. The test fails if there is not exactly one.
template <class Event>
ScheduledEvent scheduled(const Actions& actions) {
  ScheduledEvent found;
  int count = 0;
  for (const ScheduledEvent& event : actions.schedule)
    if (std::holds_alternative<Event>(event.event)) {
      found = event;
      ++count;
    }
  EXPECT_EQ(count, 1);
  return found;
}

template <class Event>
bool is_scheduled(const Actions& actions) {
  for (const ScheduledEvent& event : actions.schedule)
    if (std::holds_alternative<Event>(event.event)) return true;
  return false;
}

inline std::vector<std::string> logged(const Actions& actions) {
  std::vector<std::string> names;
  for (const RunEvent& entry : actions.log) names.push_back(entry.what);
  return names;
}

}  // namespace ganymede::sim
