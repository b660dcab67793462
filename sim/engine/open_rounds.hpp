#pragma once
// The rounds of a folded simulation in which some class of ranks still is.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/engine/symmetry.hpp"

namespace ganymede::sim {

/// The stage of a call to which a round belongs.
const QuotientStage& stage_at(const QuotientCall& call, std::int64_t round);

/// The progress of the transfers of a round; the vectors are indexed by transfer.
struct OpenRound {
  /// The number of ends that have entered the round. With an eager protocol the arrival of the bytes counts instead of
  /// the entry of the source.
  std::vector<std::uint8_t> ready;
  std::vector<std::uint8_t> leaving;   ///< flows that have not left the source
  std::vector<std::uint8_t> arriving;  ///< flows that have not reached the destination
  std::size_t classes_left = 0;        ///< classes that have not left the round
};

/// A round is opened by the first class that enters it and closed when the last class has left it.
class OpenRounds {
 public:
  /// `quotient` must outlive the object.
  explicit OpenRounds(const Quotient& quotient);

  using Rounds = std::unordered_map<std::int64_t, OpenRound>;
  /// The open rounds of a call of a communicator, by number.
  const Rounds& of_call(int communicator, std::size_t call) const;

  /// Returns a round, which it opens first if it is not open.
  OpenRound& enter(int communicator, std::size_t call, std::int64_t round);
  /// Returns an open round.
  OpenRound& at(int communicator, std::size_t call, std::int64_t round);
  /// Counts a class that leaves a round.
  void leave(int communicator, std::size_t call, std::int64_t round);
  /// Adds `rounds` to the numbers of all open rounds of a call.
  void advance(int communicator, std::size_t call, std::int64_t rounds);

 private:
  const Quotient& quotient_;
  std::vector<std::vector<Rounds>> rounds_;             // by communicator and call
  std::vector<std::vector<std::size_t>> class_counts_;  // classes that take part, by communicator and call
};

}  // namespace ganymede::sim
