#pragma once
// How much longer steps become if jobs share links: each job alternates between computing and collectives, and the
// collectives that are under way at the same time share links max-min fairly.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/max_min_solver.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

// The load of a job's collectives on the links between its ranks, in a step.

/// Bytes that one rank sends to another in a step, on the wire.
struct RankTraffic {
  int source = 0, destination = 0;
  double bytes = 0;
};

struct CollectiveTraffic {
  double alone_s = 0;  ///< time that a step's collectives take alone
  /// By how many seconds a step becomes longer for each second by which its collectives do: 1 if none of it is hidden.
  double exposed = 1;
  std::vector<RankTraffic> between;  ///< sorted by source and destination
  Topology topology = {};            ///< whose ranks these are
  double messages = 0;               ///< of a step's collectives
};

/// Sums the traffic of reductions of these sizes over a topology. Transfers to switches that reduce inside a node are
/// left out: no other job uses the same ports.
std::vector<RankTraffic> rank_traffic(const Scheme& scheme, const Topology& topology,
                                      std::span<const std::int64_t> buckets);

/// A link of the cluster and the bytes that a step of a job puts on it.
struct LinkLoad {
  int link = 0;
  double bytes = 0;
};

/// The load on the links of `fabric` if rank i of the job is the fabric's endpoint members[i]; sorted by link.
std::vector<LinkLoad> link_loads(const FabricGraph& fabric, const CollectiveTraffic& traffic,
                                 std::span<const int> members);

/// A job whose collectives cross links.
struct TalkingJob {
  double step_s = 0;          ///< mean step alone
  double alone_s = 0;         ///< time of a step's collectives alone
  double exposed = 1;         ///< seconds by which a step grows for each second by which its collectives do
  double peak = 0;            ///< bytes per second on its busiest link while its collectives run alone
  std::vector<LinkUse> uses;  ///< links; the weight is the load relative to the busiest link
  double phase = 0;           ///< share of the step under way that is done, which matters to a beat
};

/// The load of a job with this traffic on the links of `fabric`, whose first link has the number `first_link`, if its
/// rank i is the fabric's endpoint members[i]. Without uses if nothing crosses a link.
TalkingJob talking_job(const FabricGraph& fabric, const CollectiveTraffic& traffic, double step_s,
                       std::span<const int> members, int first_link);

/// When each job ends its first steps, if all begin a step at time 0. A step computes for step_s - alone_s seconds, of
/// which collectives that take longer than alone may hide `1 - exposed` of the excess, and then communicates. Exact if
/// a collective sends at one rate from its start to its end, as a ring does whose latencies are small. Stops when each
/// job has done `steps` steps, or after `max_events` starts and ends of collectives.
std::vector<std::vector<double>> step_ends(std::span<const TalkingJob> jobs, const std::vector<double>& bandwidths,
                                           std::size_t steps, std::size_t max_events);

/// The mean step of each job beside the others by a fixed point: a job that communicates meets each other job as often
/// as that one communicates, and gets at least its fair share of what these leave. Without interleaving it would be
/// slower, with perfect interleaving faster: the truth lies between the step alone and the step with all others
/// communicating always.
std::vector<double> steps_by_fixed_point(std::span<const TalkingJob> jobs, const std::vector<double>& bandwidths);

/// A job's mean step beside others. In 90 of 100 cases message fidelity is to find it between step_s * low and
/// step_s * high.
struct SharedStep {
  double step_s = 0;
  double low = 1, high = 1;
  bool operator==(const SharedStep&) const = default;
};

/// A link of the cluster.
struct SharedLink {
  double bandwidth = 0;  ///< bytes per second
  /// It is above several nodes, and a job's steps alone, which know only the job's own nodes, see another.
  bool of_many = false;
};

/// The mean step of each job. Jobs that share no link whose bandwidth they could exceed together keep their step alone.
/// Others are a group, which goes on for some steps message by message; if that is too much, groups of up to
/// kFoldedJobs jobs are folded over their phases, and larger ones take the fixed point.
class Contention {
 public:
  static constexpr std::size_t kFoldedJobs = 8;
  /// Where a step is, relative to what is said of it, in 90 of 100 cases.
  struct Range {
    double low = 1, high = 1;
  };
  /// The mean steps of some jobs message by message, by their numbers; empty: that is too much.
  using Beat = std::function<std::vector<double>(const std::vector<std::size_t>& jobs)>;

  explicit Contention(std::vector<SharedLink> links) : links_(std::move(links)) {}
  /// `jobs` are those that run now; null: one that puts nothing on links. Without `beat` formulas say all.
  std::vector<SharedStep> steps(const std::vector<const TalkingJob*>& jobs, const Beat& beat = {});

  /// Groups of jobs that were computed anew, and those of them that did not go message by message.
  std::size_t groups() const { return groups_; }
  std::size_t approximate_groups() const { return approximate_; }

 private:
  struct Group {
    std::vector<std::size_t> members;
    std::vector<TalkingJob> jobs;  // with what they put on the links that matter
    std::vector<double> bandwidths = {};
  };
  /// Groups of the members that share links which are loaded above this share of their bandwidth.
  std::vector<Group> groups_of(const std::vector<const TalkingJob*>& jobs, std::span<const std::size_t> members,
                               double full) const;
  /// Sorts the jobs by what they do and numbers their links anew, so that like groups become one, and returns all that
  /// their steps depend on but phases.
  std::vector<double> sort(Group& group) const;
  // In the order of the group's members, which they change; empty if `beat` says nothing.
  std::vector<SharedStep> by_beat(Group& group, const Beat& beat);
  std::vector<SharedStep> by_formula(Group& group);
  std::vector<SharedStep> keep(std::vector<double> key, const std::vector<double>& steps, Range range);

  std::vector<SharedLink> links_;
  std::map<std::vector<double>, std::vector<SharedStep>> known_;  // by everything that a group's steps depend on
  /// The sums of the steps of a group's beats, which differ in the phases at which they begin.
  struct Beats {
    int count = 0;
    std::vector<double> sums;
  };
  std::map<std::vector<double>, Beats> beats_;
  std::size_t groups_ = 0, approximate_ = 0;
};

}  // namespace ganymede::sim
