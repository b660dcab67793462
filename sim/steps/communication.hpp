#pragma once
// What the steps of a run ask of the fabric.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/communication_engine.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/asynchronous_steps.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede {

/// What asynchronous steps ask of the fabric.
struct ServerRoutes {
  ServerTraffic traffic;
  Seconds busiest_link;  ///< a step, at its full bandwidth
  Bytes between_sites;   ///< a step, of all workers together
};

/// Nodes that share a fabric: of one platform in one region. Behind its workers may come machines of the servers of
/// asynchronous training, one endpoint each.
struct Site {
  std::shared_ptr<const Platform> platform;
  struct Group {
    const Instance* instance;
    int nodes, gpus_per_node;
  };
  std::vector<Group> groups;
  std::size_t first_worker = 0, workers = 0;
};

/// The gradients of a model as schedules on the fabric of one site, and what they load it with. At message fidelity
/// one in a process, as its engine is.
class SiteCommunication {
 public:
  /// `pairs`: ranks 2k and 2k + 1 hold one network each, whose gradients are summed over the GPUs that hold it: over
  /// the even ranks here, and taken to last as long for the odd ones, whose links are others of the same kind.
  SiteCommunication(const Site& site, const Scheme& scheme, std::span<const std::int64_t> buckets, bool message,
                    bool jitter, bool pairs);

  /// Without jitter the same arrivals come back every step; `remember` simulates each pattern of arrivals once.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);
  /// Of a bucket whose workers arrive together.
  Seconds time(std::size_t bucket) const;
  /// Of so many bytes from one worker to its neighbour, the way being theirs alone: the worst of all neighbours.
  Seconds to_neighbour(Bytes bytes) const;
  /// The same between the two GPUs of a pair, ranks 2k and 2k + 1: the worst of all pairs.
  Seconds across_pairs(Bytes bytes) const;

  /// What so many bytes from one rank to another ask of the links, which are counted from `first` on.
  void add_transfer(int from, int to, Bytes bytes, std::size_t first, ServerTraffic::Transfer& transfer) const;
  std::size_t links() const { return fabric_.links().size(); }

  /// Workers that arrive at different times are not folded, and there are too many messages to simulate each:
  /// all-reduces then start at their last arrival, which can only be too late.
  bool starts_late() const { return late_; }
  double messages_a_step() const { return messages_; }
  /// Of these, those that a step costs to simulate.
  double simulated_a_step() const { return after_last_.empty() ? messages_ : 0; }
  /// Seconds a step for which the busiest link is needed at its full bandwidth.
  Seconds busiest_link() const { return busiest_link_; }

 private:
  std::vector<std::vector<Seconds>> simulate(std::span<const Reduction> reductions);
  Seconds to_next(Bytes bytes, int stride) const;
  void measure_load();

  std::vector<std::vector<Seconds>> from_last_arrival(std::span<const Reduction> reductions) const;

  FabricGraph fabric_;
  std::vector<int> members_;                     // the fabric's endpoint of each of the schedules'; empty: the same
  std::unique_ptr<CommunicationEngine> engine_;  // at message fidelity only
  std::vector<Schedule> schedules_;              // by bucket
  std::vector<Seconds> after_last_;  // by bucket: time from the last arrival; empty where arrivals enter the schedule
  bool late_ = false;
  double messages_ = 0;  // of one step
  Seconds busiest_link_;
  std::map<std::vector<std::int64_t>, std::vector<std::vector<Seconds>>> known_;
};

/// The same over several sites: each reduces among its own, then the sites exchange their sums on a ring over the links
/// that join them, whose slowest sets the pace; that starts when the last site is done. As of frameworks' hierarchical
/// all-reduce across regions.
class Communication {
 public:
  Communication(std::vector<Site> sites, const Scheme& scheme, std::vector<std::int64_t> buckets, bool message,
                bool jitter, bool pairs, const std::optional<Link>& between);

  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);
  Seconds time(std::size_t bucket) const;
  Seconds to_neighbour(Bytes bytes) const;
  Seconds across_pairs(Bytes bytes) const;
  /// Of asynchronous training whose servers hold weights of so many bytes between them.
  ServerRoutes to_servers(Bytes weights, const ParameterServers& servers) const;
  bool starts_late() const;
  double messages_a_step() const;
  double simulated_a_step() const;
  Seconds busiest_link() const;
  /// That cross between sites in a step, of all of them together.
  Bytes between_sites() const;

 private:
  Seconds exchange(std::int64_t bytes) const;

  std::vector<Site> sites_;
  std::vector<std::int64_t> buckets_;
  std::vector<std::unique_ptr<SiteCommunication>> inside_;
  std::optional<Link> between_;  // where there are several sites
};

}  // namespace ganymede
