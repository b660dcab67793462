#pragma once
// The steps of one configuration are draws of one distribution: simulated once, then reused by every event, seed and
// run that comes to that configuration.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "sim/steps/step_process.hpp"

namespace ganymede::sim {

/// Which nodes train, on which stage of the model, and under which conditions.
struct Configuration {
  std::vector<int> nodes;           ///< Nodes of each pool that train.
  std::size_t stage = 0;            ///< Index into Scenario::stages.
  bool cached = true;               ///< True: the dataset comes from the cache; false: from storage.
  bool burst = false;               ///< True: storage exceeds its baseline rate while credits last.
  bool nic_burst = false;           ///< True: NICs exceed the rate that they sustain while credits last.
  double network = 1, storage = 1;  ///< Share of the rate that is left, 0 to 1.
  int slow = 0;                     ///< Workers whose steps take `slow_factor` times as long.
  double slow_factor = 1;
  double cpus = 1;    ///< Share of the hosts' vCPUs that the job may use.
  double memory = 1;  ///< Share of the hosts' memory; it affects the steps only through `cached`.
  auto operator<=>(const Configuration&) const = default;
};

/// Worker-seconds of a mean step, summed over the workers of one pool. All but `device` sum to workers x mean step.
struct PoolStep {
  Seconds compute, exposed, straggler, stall, lost, device;
};

/// Bytes of a step that cross from the place of one pool to that of another.
struct PlaceTraffic {
  std::size_t from = 0, to = 0;  ///< The first pool in each place.
  Bytes bytes;
};

/// The result of simulating the steps of one configuration. Sums of a step are over all its workers.
struct StepDistribution {
  Seconds mean;
  Seconds low, high;        ///< Mean steps at the bounds of a transferred workload, with the next; else `mean`.
  double error = 0;         ///< Relative half-width for several workers and their links; 0 if `low` and `high` hold it.
  double half_width = 0;    ///< Relative half-width of the mean's 95 % interval, from simulating a sample only.
  double own_variance = 0;  ///< In s²: the time of n steps of a run has n times this variance.
  std::int64_t simulated = 0;  ///< Steps that were simulated.
  bool precise = true;         ///< True: the requested precision was reached.
  double staleness = 0;        ///< Asynchronous: updates by others between reading the weights and updating them.
  std::vector<PoolStep> pools;
  Seconds busiest_link;  ///< Time for which a step needs the busiest link at its full bandwidth.
  std::vector<PlaceTraffic> between_places;
  Seconds host;                 ///< Host seconds of a step.
  double reads = 0;             ///< Requests to the dataset's storage in a step.
  double flops = 0;             ///< Operations of a step.
  int workers = 0;              ///< GPUs that train.
  double images = 0;            ///< Images that a step trains.
  std::vector<StepSpan> spans;  ///< Spans of the steps that the scenario shows; the first step starts at 0.
  std::vector<std::string> warnings;
};

/// Writes a distribution as text, which a child process returns; parse_distribution() restores every double exactly.
std::string to_text(const StepDistribution& distribution);
StepDistribution parse_distribution(const std::string& text);

}  // namespace ganymede::sim
