#pragma once
// Executes one rank's part of a schedule, by the rules of sim/collectives/schedule.hpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/parallel/messenger.hpp"
#include "rehearsal/rank_plan.hpp"

namespace ganymede::rehearsal {

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
