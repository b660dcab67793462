#pragma once
// What a simulated run comes to: the typed form of `ganymede.result/1`.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/statistics.hpp"
#include "common/units.hpp"
#include "sim/ledger/bill.hpp"
#include "sim/ledger/energy.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/step/step_process.hpp"

namespace ganymede {

struct Interval {
  double low = 0;
  double high = 0;
};

/// Something that happened in a run: "requested", "provisioned", "ready" (training begins), "stage", "checkpoint",
/// "notice", "lost", "crashed", "restored", "resized", "released", "waiting", "straggler", …, "finished".
struct RunEvent {
  Seconds at;
  std::string what;
  std::string pool;        ///< whose nodes; may be empty
  int nodes = 0;           ///< how many; 0 where it is not about nodes
  std::string detail;      ///< of a stage its name, of a slowdown its factor
  std::int64_t times = 1;  ///< checkpoints of a stretch without other events are one entry, at their end
};

/// What a run had of one pool.
struct PoolUse {
  std::string pool, gpu;
  GpuSeconds gpu_seconds;
  double node_hours = 0;
  MicroUsd usd;               ///< of its instance-hours
  std::optional<double> kwh;  ///< none where the platform states no power
  double kg_co2e = 0;         ///< of that
  std::string owned;          ///< what its price assumes where somebody owns the machines; empty: rented
};

/// Where the money for instance-hours went; the parts sum to those items of the bill exactly.
struct CostByUse {
  std::array<MicroUsd, kGpuUseNames.size()> by_gpu_use{};
  MicroUsd idle_tail;             ///< nodes held after the last step
  MicroUsd minimum_and_rounding;  ///< billed, not used
};

/// A pool that a launch of the training rents.
struct LaunchPool {
  std::string provider, region, zone;  ///< as the catalog names them; zone may be empty
  std::string market, instance, gpu;
  int nodes = 0, gpus_per_node = 0;
};

/// The result's "launch": what to train and what to rent, as the scenario asked for it. Launch files are made from it.
struct LaunchRequest {
  std::string model, precision;   ///< of the trace
  std::string dataset;            ///< the scenario's name of it
  int batch_per_gpu = 0;          ///< images
  std::int64_t global_batch = 0;  ///< images that count in a step of what was asked for
  std::vector<LaunchPool> pools;
};

/// What the same scenario comes to with several seeds, the run's own among them.
struct SeedRuns {
  std::uint64_t first = 0;
  int count = 0;
  int finished = 0;  ///< the others never finish; all else is of those that do
  int met = 0;       ///< deadline and budget
  double losses_mean = 0;
  SeedSpread time_s, usd;
};

struct Result {
  std::string platform;    ///< "aws us-east-1"
  std::string market;      ///< "on-demand"
  std::string allocation;  ///< "2 x p3.2xlarge"
  std::string gpu;
  std::string scheme;
  std::string mode, placement, policy;
  int gpus = 0;  ///< that train, at most at once; the instances may hold more
  LaunchRequest launch;

  Seconds total;  ///< from request to the end of the last step
  std::int64_t steps = 0;
  std::int64_t images = 0;
  Seconds step_mean;
  Interval interval_s;           ///< of the total: all stated error
  Interval sampling_interval_s;  ///< of the total: from the steps drawn, and from the run being one of many
  double confidence = 0.95;      ///< of sampling_interval_s, and of interval_s where the inputs are measured
  std::int64_t steps_simulated = 0;
  std::string fidelity;

  double gpu_busy = 0;   ///< share of the GPU-seconds held in which the GPU works on phases of the step
  double gpu_flops = 0;  ///< useful FLOPs over the peak of the GPUs held
  std::optional<double>
      cpu;  ///< share of the vCPUs held that input and launching keep busy; none where vCPUs are not stated
  std::optional<double> cpu_reserved, memory_reserved;  ///< of the training nodes' vCPUs and memory, shares over time
  double network = 0;  ///< of the busiest link, its share of the time that gradients keep busy
  Bytes memory;        ///< of one GPU

  GpuSeconds gpu_seconds;
  std::vector<PoolUse> pools;       ///< those that were used
  std::int64_t losses = 0;          ///< nodes taken back or crashed
  std::int64_t checkpoints = 0;     ///< written, complete
  Seconds lost_training;            ///< training time that had to be done again
  std::optional<double> staleness;  ///< asynchronous: updates by others between reading and updating
  std::optional<Seconds> deadline;
  std::optional<MicroUsd> budget;
  bool met = true;  ///< deadline and budget, where there are any
  std::optional<SeedRuns> seeds;
  Bill bill;
  CostByUse cost_by_use;
  Interval cost_usd;                 ///< in dollars, at the ends of interval_s
  std::optional<Energy> energy;      ///< none where the platform states no power
  Interval kwh, kg_co2e;             ///< of `energy`, at the ends of interval_s
  double gpu_kwh = 0, host_kwh = 0;  ///< parts of it; 0 of hosts whose power is not stated
  std::string grid;                  ///< where the carbon intensities come from
  std::vector<RunEvent> events;
  std::vector<StepSpan> spans;  ///< of some steps of the configuration that trained most; empty unless asked for

  std::string hash;
  std::uint64_t seed = 0;
  /// How sure it is when spot nodes are taken back, the least sure of its pools: "none" (no spot), "measured",
  /// "stated", "preset" or "assumed".
  std::string risk;
  std::string inputs;  ///< the least certain of its inputs: "measured" or "transferred"
  std::string step_source, fabric_source, software, prices_as_of;
  std::vector<std::string> warnings;
};

/// The text of `ganymede.result/1`: the same bytes for the same scenario and seed.
std::string result_json(const Result& result);
/// The same in one line.
std::string result_line(const Result& result);

}  // namespace ganymede
