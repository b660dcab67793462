#pragma once
// The life of many jobs on one cluster, `ganymede.cluster-result/1`. The comments of members say what the description
// (cluster_result.cpp) does not.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/bill.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kClusterResultSchema = "ganymede.cluster-result/1";

/// A quantity over all jobs. The quantiles are values of jobs (nearest rank).
struct JobSpread {
  static constexpr std::string_view kTypeName = "spread";
  double mean = 0, median = 0, p95 = 0, max = 0;
};

struct ClusterSummary {
  std::int64_t jobs = 0;
  int gpus = 0;
  double begin_s = 0, total_s = 0;
  JobSpread completion_s, wait_s, slowdown;
  double held = 0, gpu_busy = 0, jain_fairness = 0;
  std::int64_t preemptions = 0, missed_deadlines = 0;
};

/// A time in which a job held the same GPUs.
struct JobStay {
  double from_s = 0, to_s = 0;
  std::string pool;
  std::int64_t gpus = 0;
  std::string on;
  bool packed = false, estimated = false;
};

struct JobLife {
  static constexpr std::string_view kTypeName = "job";
  std::string job, owner, workload;
  int gpus = 0;
  double arrival_s = 0, ready_s = 0, start_s = 0, end_s = 0;
  double wait_s = 0, run_s = 0, alone_s = 0, slowdown = 0, gpu_hours = 0;
  std::optional<double> run_low_s, run_high_s;  ///< none: no other job used its links
  int preemptions = 0;
  double restart_s = 0;
  std::int64_t priority = 0;
  std::optional<double> deadline_s;
  std::optional<bool> in_time;  ///< none without a deadline
  std::vector<JobStay> stays;
};

/// The sums of an owner's jobs; of nobody, the cost of the GPUs that no job held.
struct OwnerShare {
  std::optional<std::string> owner;
  std::int64_t jobs = 0;
  std::optional<double> gpu_hours, slowdown_mean;
  MicroUsd usd;
};

/// The state of the queue from a moment on.
struct QueuePoint {
  static constexpr bool kIsRow = true;
  double at_s = 0;
  int waiting = 0, running = 0;
  int waiting_gpus = 0, held_gpus = 0;
};

struct ClusterPoolUse {
  std::string pool;
  int nodes = 0, gpus_per_node = 0;
  std::string gpu;
  double held = 0, gpu_busy = 0;
};

struct ClusterEnergy {
  double kwh = 0, kg_co2e = 0;
};

struct ClusterProvenance {
  std::string tool, cluster_hash;
  std::uint64_t seed = 0;
  std::string fidelity;
  double messages_simulated = 0;
  std::int64_t events = 0, decisions = 0;
  std::int64_t contending_groups = 0, approximate_groups = 0;
  std::optional<double> approximate_steps_within;  ///< of programs before jobs had intervals
  std::vector<std::string> warnings;
};

struct ClusterResult {
  std::string scheduler, placement;
  ClusterSummary summary;
  std::vector<JobLife> jobs;
  std::vector<OwnerShare> owners;  ///< the last is nobody
  std::vector<QueuePoint> queue;
  std::vector<ClusterPoolUse> pools;
  MicroUsd usd;  ///< the bill's total
  std::vector<PlainBillItem> items;
  std::optional<ClusterEnergy> energy;
  ClusterProvenance provenance;
};

void describe(Walk& walk, JobLife& job);
void describe(Walk& walk, ClusterResult& result);

/// The text of a result: the same bytes for the same cluster and seed.
std::string cluster_result_text(const ClusterResult& result);
/// Throws ConfigError, located, unless `node` is such a result. Members of newer programs are passed over.
ClusterResult read_cluster_result(const JsonNode& node);

}  // namespace ganymede::documents
