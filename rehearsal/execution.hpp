#pragma once
// Executes one rank's part of a schedule, by the rules of sim/collectives/schedule.hpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/parallel/communicator.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::rehearsal {

/// Fills a rank's buffer with whole numbers from 0 to 63 that differ by rank and place, whose sums over up to 65,536
/// ranks are exact in fp32 in any order.
void fill(std::span<float> buffer, int rank);

/// Adds as many floats from `theirs` on to `mine`.
void add(std::span<float> mine, const float* theirs);

/// Returns what is wrong with a buffer that should hold the sums over all ranks: "float 17 is 3, expected 5; 4 of 16
/// are wrong"; "": nothing.
std::string fault_in_sum(std::span<const float> buffer, int ranks);

// The part of a schedule that one rank executes. Plans are those of sim/collectives: nothing here knows an algorithm.

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

/// A collective that one rank takes part in. Nothing blocks, so that a rank can do other work between two calls of
/// progress().
///
/// It cannot deadlock, whatever the schedule: on entering a round a rank posts all its receives and starts all its
/// sends of that round before it waits for any. By induction over rounds, the earliest unfinished round of all ranks
/// has been entered by both ends of each of its transfers.
class Execution {
 public:
  /// Enters round 0 of every lane. `plan` and `buffer` must outlive the execution; the buffer has plan.floats() floats.
  /// Messages of lane l have the tag `first_tag` + l.
  Execution(const RankPlan& plan, kernel::Messenger& messenger, std::span<float> buffer, int first_tag);

  /// Handles what has happened since the last call; returns true if anything had.
  bool progress();
  bool done() const { return open_lanes_ == 0; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.size_bytes()); }
  /// The messages that the rank waits for: "round 3: from rank 5"; for messages to people. `name_of` names a rank.
  std::string waits_for(const std::function<std::string(int)>& name_of) const;

 private:
  struct Sending {
    kernel::Messenger::Message message;
    const sim::Transfer* transfer;
  };
  struct Receiving {
    kernel::Messenger::Message message;
    const sim::Transfer* transfer;
    std::vector<float> arrived;  ///< empty: the bytes go straight into the buffer
    bool complete = false;       ///< arrived, but not yet in the buffer
  };
  struct Lane {
    std::size_t round = 0;
    std::vector<Sending> sends;
    std::vector<Receiving> receives;
  };

  std::span<float> part(const sim::Transfer& transfer) const;
  void enter(std::size_t lane);
  bool advance(std::size_t lane);
  bool can_apply(const Lane& lane, const Receiving& receiving) const;
  void apply(Receiving& receiving) const;

  const RankPlan& plan_;
  kernel::Messenger& messenger_;
  std::span<float> buffer_;
  int first_tag_;
  std::vector<Lane> lanes_;
  std::size_t open_lanes_ = 0;
};

}  // namespace ganymede::rehearsal
