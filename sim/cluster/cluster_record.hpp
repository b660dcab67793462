#pragma once
// The life of a cluster leaves a record, from which follow its times, utilization, fairness, energy and bill.

#include <cstdint>
#include <string>
#include <vector>

#include "documents/cluster_result.hpp"
#include "policies/schedulers/placement.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/run/run_bill.hpp"

namespace ganymede::sim {

// Which GPUs of a pool are taken, and by whom.

/// A GPU of a pool's node.
struct GpuSlot {
  int node = 0, gpu = 0;
  auto operator<=>(const GpuSlot&) const = default;
};

/// GPUs that a job holds: half of one that it shares with another job.
inline double gpus_held(const std::vector<GpuSlot>& slots, bool shared) {
  return static_cast<double>(slots.size()) * (shared ? 0.5 : 1);
}

class FreeNodes {
 public:
  FreeNodes(int nodes, int gpus_per_node, int group)
      : free_(static_cast<std::size_t>(nodes), gpus_per_node),
        taken_(static_cast<std::size_t>(nodes), std::vector<bool>(static_cast<std::size_t>(gpus_per_node), false)),
        gpus_per_node_(gpus_per_node),
        group_(group) {}

  int free() const;
  /// Takes so many GPUs by the rule; on each node those with the lowest numbers. Precondition: they are free.
  std::vector<GpuSlot> take(const policies::PlacementRule& rule, int gpus);
  void give(const std::vector<GpuSlot>& slots);

 private:
  std::vector<int> free_;  // by node
  std::vector<std::vector<bool>> taken_;
  int gpus_per_node_, group_;
};

/// GPUs by node, largest first.
std::vector<int> shape_of(const std::vector<GpuSlot>& slots);
/// By rank of a job on these GPUs: the endpoint of its GPU in the fabric of the whole pool. Ranks are numbered node by
/// node, larger shares first, as in the job's shape.
std::vector<int> members_of(std::vector<GpuSlot> slots, int gpus_per_node);

/// The time between two moments of the clock, which counts nanoseconds.
inline double between_s(double from_s, double to_s) {
  return to_seconds(to_nanoseconds(Seconds{to_s}) - to_nanoseconds(Seconds{from_s})).si;
}

/// A time in which a job held the same GPUs.
struct Stay {
  double from_s = 0, to_s = 0;
  std::size_t pool = 0;
  std::vector<GpuSlot> slots;
  bool packed = false;     ///< a second job was on the GPU when it began
  bool estimated = false;  ///< the speeds of the two there were not measured
  double reads = 0;        ///< requests to the store of its dataset

  double gpus() const { return gpus_held(slots, packed); }
};

struct JobRecord {
  double ready_s = 0;   ///< when it could first have run: its arrival, or the end of what it waited for
  double start_s = -1;  ///< when it first ran; below 0: never
  double end_s = -1;
  double held_gpu_s = 0;
  double busy_gpu_s = 0;  ///< GPU-seconds in which kernels ran
  double restart_s = 0;   ///< seconds spent on saving, starting again and loading
  /// By how much its steps may be shorter and longer, because how much slower shared links make them is not exact.
  double shorter_s = 0, longer_s = 0;
  int preemptions = 0;           ///< stops, moves and changes of size
  std::int64_t checkpoints = 0;  ///< that were written
  double alone_s = 0;            ///< the run alone on the GPUs asked for, on its fastest pool
  double work = 0;
  std::vector<Stay> stays;
};

using documents::QueuePoint;

struct ClusterRecord {
  std::vector<JobRecord> jobs;
  std::vector<QueuePoint> queue;
  double begin_s = 0;  ///< the first arrival, from which on nodes are paid
  double end_s = 0;
  double span_s() const { return between_s(begin_s, end_s); }
  std::vector<double> held_gpu_s, busy_gpu_s;  ///< by pool
  std::vector<double> host_s;                  ///< by pool: seconds for which vCPUs of hosts are busy
  OtherUse other;                              ///< what jobs use beside the nodes
  std::int64_t events = 0, decisions = 0;
  std::size_t contending_groups = 0, approximate_groups = 0;
  double messages = 0;  ///< that were simulated
  std::vector<std::string> warnings;
};

/// Jain's index of fairness: (sum x)² / (n sum x²), 1 if all are equal, 1/n if one has all (Jain, Chiu, Hawe,
/// DEC-TR-301, 1984). 1 for no values.
double jain_index(const std::vector<double>& values);

/// Dollars for what each owner's jobs held, and for what nobody held; they sum to the bill's total.
struct OwnerCosts {
  std::vector<MicroUsd> owners;
  MicroUsd idle;
};

struct ClusterCosts {
  RunEnergy energy;
  RunBill bill;
};

/// Bill and energy of all nodes from the first arrival to the last end, and of what jobs used beside them, by the rules
/// for runs: a cluster with one job on all of its nodes costs what its run does after the boot.
ClusterCosts cluster_costs(const Cluster& cluster, const ClusterRecord& record);
/// Cost that belongs to no pool (storage, servers, services) is shared by the GPU-seconds of all pools.
OwnerCosts owner_costs(const Cluster& cluster, const ClusterRecord& record, const Bill& bill);

/// The result as text, a `ganymede.cluster-result/1`.
std::string cluster_result_json(const Cluster& cluster, const ClusterRecord& record);

// The jobs of a cluster use more than its nodes: stores, and dedicated parameter servers.

/// The charges for the stores and servers of a finished life, whose jobs and end `record` must have. Workloads with
/// the same class, rate and IOPS in a place read from one store, as in `job_speeds.hpp`, which holds the datasets
/// of all of them for the cluster's whole life; if each node has a volume of its own, one for each node on which one of
/// their jobs ever ran. A job has a checkpoint of its own from its start to its end, and servers while it has GPUs.
OtherUse other_use(const Cluster& cluster, const ClusterRecord& record, JobSpeeds& speeds);

}  // namespace ganymede::sim
