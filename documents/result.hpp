#pragma once
// The result of a simulated run, `ganymede.result/1`. The comments of members say what the description (result.cpp)
// does not.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/gpu_use.hpp"
#include "common/json_fwd.hpp"
#include "common/statistics.hpp"
#include "common/units.hpp"
#include "documents/bill.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kResultSchema = "ganymede.result/1";

/// Something that happened in a run: "requested", "provisioned", "ready" (training begins), "stage", "checkpoint",
/// "notice", "lost", "crashed", "restored", "resized", "released", "waiting", "straggler", …, "finished".
struct RunEvent {
  Seconds at;
  std::string what;
  std::string pool;    ///< whose nodes it is about; may be empty
  int nodes = 0;       ///< 0 if it is not about nodes
  std::string detail;  ///< name of a stage, or factor of a slowdown
  /// Several checkpoints without another event between them are one entry, at the end of the last one.
  std::int64_t times = 1;
};

/// GPU time by use, in seconds. The total is rounded by itself.
struct GpuTime {
  static constexpr std::string_view kTypeName = "gpu_seconds";
  std::array<double, kGpuUseNames.size()> by_use{};
  double total = 0;

  double seconds(GpuUse use) const { return by_use[static_cast<std::size_t>(use)]; }
  double total_seconds() const { return total; }
  double hours() const { return total / 3600; }
  double share(GpuUse use) const { return total > 0 ? seconds(use) / total : 0; }  ///< of the total
};

/// The use that a run made of one pool.
struct PoolUse {
  std::string pool, gpu;
  GpuTime gpu_seconds;
  double node_hours = 0;
  MicroUsd usd;       ///< for its instance-hours
  std::string owned;  ///< empty: rented machines
};

/// Where the money for instance-hours went. The parts sum exactly to those items of the bill.
struct CostByUse {
  std::array<MicroUsd, kGpuUseNames.size()> by_gpu_use{};
  MicroUsd idle_tail;             ///< nodes that are held after the last step
  MicroUsd minimum_and_rounding;  ///< time that is billed and was not used
};

/// The nodes of one pool that the run was asked to rent.
struct LaunchPool {
  std::string provider, region, zone;  ///< names of the catalog; the zone may be empty
  std::string market, instance, gpu;
  int nodes = 0, gpus_per_node = 0;
};

/// The training and the nodes to rent, as the scenario asked for it. Launch files are made from it.
struct LaunchRequest {
  std::string model, precision;   ///< of the trace
  std::string dataset;            ///< as the scenario calls it
  int batch_per_gpu = 0;          ///< images
  std::int64_t global_batch = 0;  ///< images that count in a step on the nodes asked for
  std::vector<LaunchPool> pools;  ///< those asked for; pools that only the policy may use are left out
};

/// Runs of the same scenario with several seeds, the result's own among them.
struct SeedRuns {
  std::uint64_t first = 0;  ///< the seeds are `first` and those that follow it
  int count = 0;
  int finished = 0;  ///< runs that finish; the fields below are about these
  int met = 0;       ///< runs that keep deadline and budget
  double losses_mean = 0;
  SeedQuantiles time_s, usd;
};

/// A training to an FID: images of a median training that gets there, and of 90 % of these.
struct QualityTarget {
  double fid = 0;
  double images = 0;
  Interval images_interval;
  double never = 0;  ///< share of the trainings
};

/// Electricity at the data centre's meter, its overhead (PUE) included, and what the grid emits for it.
struct EnergyUse {
  double kwh = 0, kg_co2e = 0;
  Interval kwh_interval, kg_co2e_interval;  ///< at the bounds of the time
  double gpu_kwh = 0, host_kwh = 0;         ///< parts of kwh; 0 for hosts whose power is not stated
  std::string grid;                         ///< sources of the carbon intensities
};

/// Rows of what workers do in some steps, for pictures. They refer to names and kinds by index, because there may be
/// many.
struct StepSpans {
  static constexpr std::array kKinds = {"compute",   "host",  "communication", "exposed",
                                        "straggler", "input", "input_stall",   "lost"};
  struct Row {
    static constexpr bool kIsRow = true;
    int worker = 0, kind = 0, name = 0;
    Seconds start, length;
  };
  std::vector<std::string> names;
  std::vector<Row> rows;
};

struct Result {
  std::string platform;    ///< "aws us-east-1"
  std::string market;      ///< "on-demand"
  std::string allocation;  ///< "2 x p3.2xlarge"
  std::string gpu;
  std::string scheme;
  std::string mode, placement, policy;
  int gpus = 0;  ///< the most that trained at once; the instances may hold more
  LaunchRequest launch;
  std::optional<QualityTarget> quality;

  Seconds total;  ///< from the request to the end of the last step, or of the last checkpoint
  std::int64_t steps = 0;
  std::int64_t images = 0;
  Seconds step_mean;
  Interval interval_s;           ///< of the total: all stated error
  Interval sampling_interval_s;  ///< of the total: error of the steps' sampling, and the spread between equal runs
  double confidence = 0.95;      ///< of sampling_interval_s, and of interval_s if the inputs are measured
  std::int64_t steps_simulated = 0;
  std::string fidelity;

  double gpu_busy = 0;   ///< share of the GPU-seconds held in which the GPU works on phases of the step
  double gpu_flops = 0;  ///< useful FLOPs over the peak of the GPUs held
  /// Share of the vCPUs held that input and launching keep busy; none if vCPUs are not stated.
  std::optional<double> cpu;
  std::optional<double> cpu_reserved, memory_reserved;  ///< shares of the training nodes' vCPUs and memory, over time
  double network = 0;  ///< share of the run's time in which gradients keep the busiest link busy
  Bytes memory;        ///< of one GPU

  GpuTime gpu_seconds;
  std::vector<PoolUse> pools;       ///< those that were used
  std::int64_t losses = 0;          ///< nodes taken back or crashed
  std::int64_t checkpoints = 0;     ///< complete
  Seconds lost_training;            ///< training time that had to be done again
  std::optional<double> staleness;  ///< asynchronous: updates by others between reading and updating
  std::optional<Seconds> deadline;
  std::optional<MicroUsd> budget;
  bool met = true;  ///< true: the run keeps its deadline and its budget, if any
  std::optional<SeedRuns> seeds;
  std::vector<RunEvent> events;
  std::optional<StepSpans> spans;  ///< of some steps of the configuration that trained most; none unless asked for

  MicroUsd usd;  ///< the bill's total
  Bill bill;
  CostByUse cost_by_use;
  UsdInterval cost_usd;             ///< over the bounds of interval_s
  std::optional<EnergyUse> energy;  ///< none if the platform states no power

  std::string tool;   ///< "ganymede 0.3.0"
  std::string hash;   ///< of the scenario with its files
  JsonText scenario;  ///< as it was read; a sweep's rows have none
  /// The hashes of the files that the scenario names, by JSON pointer; none where there is no scenario.
  std::optional<std::map<std::string, std::string>> file_hashes;
  std::uint64_t seed = 0;
  /// How certain it is when spot nodes are taken back, for the least certain pool: "none" (no spot), "measured",
  /// "stated", "preset" or "assumed".
  std::string risk = "none";
  std::string inputs;  ///< the least certain of the inputs: "measured" or "transferred"
  std::string step_source, fabric_source, software, prices_as_of;
  std::vector<std::string> warnings;
};

void describe(Walk& walk, Result& result);

/// The text of a result: the same bytes for the same scenario and seed.
std::string result_text(const Result& result);
/// The same as JSON, without the scenario and its files' hashes: a sweep holds its study instead.
OrderedJson result_row(Result result);
/// Throws ConfigError, located, unless `node` is a result. Members of newer programs are passed over.
Result read_result(const JsonNode& node);
/// The same for a value in memory, which errors call "result".
Result result_in(const Json& value);

}  // namespace ganymede::documents
