#pragma once
// What an all-reduce scheme plans: who sends which bytes to whom, in which round. A schedule is a function, never a
// list: ring over 65,536 ranks is 8.6e9 transfers, of which one round at a time is looked at.

#include <cstdint>
#include <functional>
#include <vector>

namespace ganymede {

/// Bytes [offset, offset + length) of the source's buffer, sent to the same place in the destination's.
struct Transfer {
  int source = 0;
  int destination = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;  ///< above zero
  bool reduce = false;      ///< the destination adds them to its own; otherwise they replace its own
  bool operator==(const Transfer&) const = default;
};

/// Adding one received byte to one's own reads both and writes the sum: this many bytes of GPU memory traffic.
inline constexpr int kMemoryBytesPerReducedByte = 3;

/// Rounds of transfers over one buffer a rank. Its meaning, for whoever executes one:
///  - A rank enters round 0 when it enters the collective, and round r + 1 when every transfer of round r in which it
///    takes part is done. In a round in which it takes part in none it does not wait.
///  - A transfer starts when both of its ends have entered its round, and carries what its source held on entering it.
///  - It is done for its source when all bytes have arrived; for its destination when they have also been added, if it
///    reduces. A rank adds one transfer at a time, at kMemoryBytesPerReducedByte bytes of memory traffic a byte.
///  - Within a round no byte of a rank is both replaced and written by another transfer, so the order of arrival does
///    not matter.
class Schedule {
 public:
  /// Appends the transfers of one round.
  using Expand = std::function<void(std::int64_t round, std::vector<Transfer>& transfers)>;

  /// Preconditions: ranks > 0, bytes >= 0, rounds >= 0, and `expand` gives the same answer for the same round.
  Schedule(int ranks, std::int64_t bytes, std::int64_t rounds, Expand expand);

  int ranks() const { return ranks_; }
  std::int64_t bytes() const { return bytes_; }  ///< of each rank's buffer
  std::int64_t rounds() const { return rounds_; }

  /// Replaces the content of `transfers`, whose memory is reused, by round `index` (0 <= index < rounds()), in a fixed
  /// order. A round may be empty when there are fewer bytes than ranks.
  void round(std::int64_t index, std::vector<Transfer>& transfers) const;

 private:
  int ranks_;
  std::int64_t bytes_;
  std::int64_t rounds_;
  Expand expand_;
};

}  // namespace ganymede
