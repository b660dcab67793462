#pragma once
// The part of a schedule that one rank executes. Plans are those of sim/collectives: nothing here knows an algorithm.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::rehearsal {

/// Plans for processes that hold floats: the schedule of the least size from `bytes` on in which every transfer begins
/// and ends between two floats. For example, a ring of 3 ranks over 64 KiB is planned for 65,544 bytes. Its costs are
/// those of sockets and MPI: a source does not wait for its destination (ProtocolCost::eager), and nothing else. Throws
/// SchemeRefused if the scheme cannot serve the request or needs switches that reduce, which no process is.
sim::Schedule plan_for_processes(const sim::Scheme& scheme, const sim::Topology& topology, std::int64_t bytes);

/// The messages that one rank sends and receives, in the order of its schedule.
class RankPlan {
 public:
  /// Expands the schedule once. Throws ConfigError if it has more than kMaxMessages messages.
  RankPlan(const sim::Schedule& schedule, int rank);
  static constexpr std::int64_t kMaxMessages = 5'000'000;

  /// A round in which the rank has transfers. Rounds without any are left out, because a rank does not wait in them.
  struct Round {
    std::int64_t number;  ///< in the schedule, for messages to people
    std::vector<sim::Transfer> sends, receives;
  };
  /// The rounds of each lane.
  const std::vector<std::vector<Round>>& lanes() const { return lanes_; }
  std::size_t floats() const { return floats_; }  ///< length of the rank's buffer

 private:
  std::vector<std::vector<Round>> lanes_;
  std::size_t floats_;
};

}  // namespace ganymede::rehearsal
