#pragma once
// Collectives and transfers on the fabric of one site, simulated by sim/engine.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/collectives/allreduce.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/steps/asynchronous_steps.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {

/// Nodes that share a fabric: those of one platform in one place. Dedicated servers of asynchronous training, one
/// endpoint each, may follow its workers.
struct Site {
  std::shared_ptr<const platforms::Platform> platform;
  struct Group {
    const platforms::Instance* instance;
    int nodes, gpus_per_node;
  };
  std::vector<Group> groups;
  std::size_t first_worker = 0, workers = 0;
};

/// When the workers are done with reductions, by the exact bucket and arrivals of each: a function of them alone on one
/// network with one scheme.
using KnownReductions = std::map<std::vector<double>, std::vector<std::vector<Seconds>>>;
/// The same for several networks, each named by all that its times depend on.
using ReductionCache = std::map<std::string, KnownReductions>;

/// The gradients of a model as schedules on the fabric of one site. At message fidelity the sites of a process share an
/// engine, because SimGrid allows one.
class SiteCommunication {
 public:
  /// `buckets`: bytes of each bucket of gradients. `message`: every message is simulated. `jitter`: workers arrive at
  /// different times. `pairs`: ranks 2k and 2k + 1 hold one network each, whose gradients are summed over the GPUs that
  /// hold it. They are simulated over the even ranks; those over the odd ranks take as long, on other links of the same
  /// kind.
  SiteCommunication(const Site& site, const Scheme& scheme, std::span<const std::int64_t> buckets, bool message,
                    bool jitter, bool pairs);

  /// Simulates messages with this engine, whose network has the site's endpoints from `first_endpoint` on.
  void share_engine(std::shared_ptr<CommunicationEngine> engine, int first_endpoint);
  const Network& network() const { return fabric_; }
  /// Takes reductions from `known`, which must outlive this, and adds those that it simulates.
  void share(KnownReductions& known) { shared_ = &known; }

  /// Runs reductions in order, as Reduce does. With `remember` each pattern of arrivals is simulated only once: without
  /// jitter every step has the same pattern.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);
  /// The version of NCCL that is assumed, if another would change the largest bucket's time by 5 % (nccl_bound.hpp).
  const std::string& nccl_version() const { return nccl_version_; }
  /// The time of a bucket's reduction if all workers arrive together.
  Seconds time(std::size_t bucket) const;
  /// The time to send `bytes` from a worker to the next one without other traffic: the longest over all neighbours.
  Seconds to_neighbour(Bytes bytes) const;
  /// The time to send `bytes` between the GPUs of a pair, ranks 2k and 2k + 1: the longest over all pairs.
  Seconds across_pairs(Bytes bytes) const;

  /// Adds to `transfer` the load that sending `bytes` from one rank to another puts on the links; link i has the number
  /// `first_link` + i.
  void add_transfer(int from, int to, Bytes bytes, std::size_t first_link, ServerTraffic::Transfer& transfer) const;
  std::size_t links() const { return fabric_.links().size(); }

  /// Share of compute speed that kernels on `gpu` lose while a reduction is under way (interference.hpp).
  double compute_share_lost(const platforms::Gpu& gpu) const;
  /// True if all-reduces are taken to start at their last arrival, which may be too late but never too early. This
  /// happens if workers arrive at different times, so that they cannot be folded, and there are too many messages to
  /// simulate each.
  bool starts_late() const { return late_; }
  double messages_per_step() const { return messages_; }
  double work_per_step() const { return work_; }  ///< the messages as Schedule::work() counts them
  /// Number of messages that must be simulated anew for each step.
  double simulated_messages_per_step() const { return after_last_.empty() ? messages_ : 0; }
  /// Time for which a step needs the busiest link at its full bandwidth.
  Seconds busiest_link() const { return busiest_link_; }

 private:
  std::vector<std::vector<Seconds>> simulate(std::span<const Reduction> reductions);
  std::vector<std::vector<Seconds>> simulate_now(std::span<const Reduction> reductions);
  std::vector<std::vector<Seconds>> from_last_arrival(std::span<const Reduction> reductions) const;
  Seconds to_next(Bytes bytes, int stride) const;
  void measure_load();

  FabricGraph fabric_;
  const AllReduceScheme* scheme_;
  std::string nccl_version_;
  std::vector<int> members_;                     // the fabric's endpoint of each rank of the schedules; empty: the same
  std::shared_ptr<CommunicationEngine> engine_;  // at message fidelity only
  std::vector<int> in_engine_;                   // the engine's endpoint of each endpoint; empty: the same
  std::vector<Schedule> schedules_;              // by bucket
  std::vector<Seconds> after_last_;  // by bucket: time from the last arrival; empty: arrivals enter the schedule
  bool late_ = false;
  double messages_ = 0, work_ = 0;  // of one step
  Seconds busiest_link_;
  std::map<std::vector<std::int64_t>, std::vector<std::vector<Seconds>>> known_;  // by pattern of arrivals
  KnownReductions* shared_ = nullptr;                                             // null: nothing is shared
};

}  // namespace ganymede::sim
