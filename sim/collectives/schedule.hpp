#pragma once
// What a scheme plans: who sends which bytes to whom, in which round. A schedule is a function, never a list: ring over
// 65,536 ranks is 8.6e9 transfers, of which one round at a time is looked at.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// Bytes [offset, offset + length) of the source's buffer, sent to the same place in the destination's. Source and
/// destination are endpoints: ranks, and behind them switches that reduce (topology.hpp).
struct Transfer {
  int source = 0;
  int destination = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;  ///< above zero
  bool reduce = false;      ///< the destination adds them to its own; otherwise they replace its own
  int lane = 0;             ///< below Schedule::lanes()
  bool operator==(const Transfer&) const = default;
};

/// Adding one received byte to one's own reads both and writes the sum: this many bytes of GPU memory traffic.
inline constexpr int kMemoryBytesPerReducedByte = 3;

/// Rounds whose transfers differ in nothing but their offsets, which is what lets a simulation fold them.
struct Stage {
  std::int64_t rounds = 1;  ///< above zero
  /// Appends the transfers of one round (0 <= round < rounds), in an order that is the same for all rounds.
  std::function<void(std::int64_t round, std::vector<Transfer>& transfers)> expand;
};

/// What the protocol under a scheme adds to what the fabric costs; a latency below zero is taken off the fabric's, down
/// to none. The default adds nothing.
struct ProtocolCost {
  double wire = 1;     ///< bytes on the wire a byte of payload
  Seconds start{0};    ///< once a rank and collective, beside the GPU's launch
  Seconds inside{0};   ///< each message inside a node
  Seconds between{0};  ///< each message between nodes
  BytesPerSecond flow_inside{std::numeric_limits<double>::infinity()};   ///< what one message can reach, in wire bytes
  BytesPerSecond flow_between{std::numeric_limits<double>::infinity()};  ///< the same between nodes
  bool reduction_is_free = false;  ///< the protocol's own rate has the reduction in it
  bool eager = false;              ///< a source does not wait for its destination (below)
};

/// Rounds of transfers over one buffer an endpoint. Its meaning, for whoever executes one:
///  - An endpoint enters round 0 when it enters the collective, and round r + 1 when every transfer of round r in which
///    it takes part is done. In a round in which it takes part in none it does not wait. Switches enter at once.
///  - A transfer starts when both of its ends have entered its round, and carries what its source held on entering it.
///  - It is done for its source when all bytes have arrived; for its destination when they have also been added, if it
///    reduces. A rank adds one transfer at a time, at kMemoryBytesPerReducedByte bytes of memory traffic a byte; a
///    switch adds in passing.
///  - With an eager protocol a transfer starts when its source has entered its round, and occupies links from then on;
///    it is done for its source when its last byte has left, and reaches its destination one latency later, where it
///    waits for the destination to enter the round. So a latency is paid by what depends on the bytes, not every round.
///  - Lanes (channels, in NCCL's words) are walked through side by side: in each an endpoint has rounds of its own, and
///    a rank is done when it is done in all. They touch different bytes, and reduction is free.
///  - Within a round no byte of an endpoint is both replaced and written by another transfer, so the order of arrival
///    does not matter.
class Schedule {
 public:
  /// Preconditions: 0 < ranks <= endpoints, bytes >= 0, and `expand` gives the same answer for the same round.
  /// `bytes` is the length of each endpoint's buffer: the payload, padded where the scheme cuts it into equal chunks.
  Schedule(int ranks, int endpoints, std::int64_t bytes, std::vector<Stage> stages, ProtocolCost cost = {});
  Schedule(int ranks, std::int64_t bytes, std::vector<Stage> stages)
      : Schedule(ranks, ranks, bytes, std::move(stages)) {}

  int ranks() const { return ranks_; }
  int endpoints() const { return endpoints_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t rounds() const { return rounds_; }
  const std::vector<Stage>& stages() const { return stages_; }
  const ProtocolCost& cost() const { return cost_; }

  /// What the scheme chose where it chooses: "ring, LL128, 8 channels"; else empty.
  const std::string& note() const { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }

  int lanes() const { return lanes_; }
  void set_lanes(int lanes) { lanes_ = lanes; }

  /// Replaces the content of `transfers`, whose memory is reused, by round `index` (0 <= index < rounds()), in a fixed
  /// order.
  void round(std::int64_t index, std::vector<Transfer>& transfers) const;

  /// Of all rounds.
  std::int64_t messages() const;

 private:
  int ranks_;
  int endpoints_;
  std::int64_t bytes_;
  std::int64_t rounds_ = 0;
  std::vector<Stage> stages_;
  std::vector<std::int64_t> first_;  // round of each stage
  ProtocolCost cost_;
  int lanes_ = 1;
  std::string note_;
};

/// The least multiple of `parts` that is not below `bytes`: buffers are padded so that all chunks are equal, as
/// Horovod and ZeRO pad theirs.
std::int64_t padded(std::int64_t bytes, std::int64_t parts);

}  // namespace ganymede
