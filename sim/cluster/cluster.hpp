#pragma once
// A cluster, `ganymede.cluster/1`: nodes, jobs that arrive over time, and a scheduler. It is read once, strictly, into
// a struct whose references all resolve.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "policies/schedulers/placement.hpp"
#include "policies/schedulers/scheduler.hpp"
#include "sim/cluster/throughputs.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// The work of jobs of a kind. Exactly one of `scenario`, `model` and neither is set; a job with neither runs for the
/// time that it states.
struct ClusterWorkload {
  std::string name;
  /// A scenario without its platform: workload, synchronization, storage. Null: none.
  std::shared_ptr<const JsonNode> scenario;
  std::string model, batch;  ///< of the table of measured throughputs; "": none
  double noise_images = 0;   ///< gradient noise scale in images; 0: any number of GPUs is as efficient
};

/// The highest priority of a job, and the lowest with the other sign: those of Slurm have 32 bits.
inline constexpr std::int64_t kHighestPriority = 4'294'967'295;

struct ClusterJob {
  std::string name;
  double arrival_s = 0;
  int gpus = 1;
  int least = 1, most = 1;
  std::int64_t priority = 0;
  std::optional<double> deadline_s;  ///< counted from its arrival
  std::size_t owner = 0;
  std::size_t workload = 0;
  /// Steps of the job: of all its workers together for a measured throughput; 0: as many as the scenario says.
  double steps = 0;
  double duration_s = 0;           ///< of a job without a workload, on the GPUs that it asks for
  std::vector<std::size_t> after;  ///< jobs that must have finished before
};

/// The cost of a preemption, a move or a change of size.
struct PreemptionCost {
  std::optional<Seconds> save;     ///< to write a checkpoint; none: as the scenario's storage takes
  std::optional<Seconds> restore;  ///< to start again and to read it; none: as the scenario's storage takes
};

struct ClusterScheduler {
  const policies::Scheduler* row = nullptr;
  std::vector<double> settings;
  std::vector<std::string> command;  ///< of the scheduler external
  Seconds limit{10};                 ///< of the scheduler external: the longest time for one answer
};

struct Cluster {
  std::string file, hash, content;
  std::vector<ScenarioPool> pools;
  std::vector<Json> pool_json;  ///< the platform of each pool as a scenario states it
  std::vector<policies::OwnerState> owners;
  std::vector<ClusterWorkload> workloads;
  std::vector<ClusterJob> jobs;  ///< in the order of arrival
  ClusterScheduler scheduler;
  const policies::PlacementRule* placement = nullptr;
  PreemptionCost preemption;
  Charges charges;                                 ///< for what is billed beside nodes and the storage of workloads
  std::shared_ptr<const Throughputs> throughputs;  ///< null: no workload needs them
  /// Two jobs of one GPU each may share a GPU if their speeds, relative to alone, sum to at least this; 0: never.
  double packing = 0;
  bool contention = true;
  Fidelity fidelity = Fidelity::sampled;  ///< message: jobs are processes on SimGrid (simgrid_jobs.hpp)
  /// The most messages that are simulated to see how jobs slow each other down; beyond, formulas say it.
  double beat_messages = 1e6;
  double precision = 0.005;
  std::uint64_t seed = 0;
  std::vector<std::string> warnings;

  int gpus() const;
};

/// Throws ConfigError with file and pointer for bad input, Infeasible if a job fits no pool.
Cluster read_cluster(const JsonNode& node);
/// True if the document says that it is a cluster.
bool is_cluster(const Json& document);

}  // namespace ganymede::sim
