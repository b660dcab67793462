#pragma once
// What a scheme plans: who sends which bytes to whom, in which round. A schedule is a function, never a list: a ring
// over 65,536 ranks has 8.6e9 transfers, of which only one round at a time is expanded.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// One message: bytes [offset, offset + length) of the source's buffer go to the same place in the destination's.
/// Source and destination are endpoints: ranks, or switches that reduce, which are numbered after the ranks
/// (topology.hpp).
struct Transfer {
  int source = 0;
  int destination = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;  ///< above zero
  bool reduce = false;      ///< true: the destination adds the bytes to its own; false: they replace its own
  int lane = 0;             ///< below Schedule::lanes()
  bool operator==(const Transfer&) const = default;
};

/// Bytes of GPU memory traffic for each reduced byte: both operands are read and the sum is written.
inline constexpr int kMemoryBytesPerReducedByte = 3;

/// Called with a transfer and the stages [first, end) that it belongs to.
using VisitSpan = std::function<void(const Transfer& transfer, int first, int end)>;

/// Consecutive stages that share transfers, as those of a pipelined tree do. Calls its argument once for each transfer;
/// stages count from the first one of the series.
using StageSeries = std::function<void(const VisitSpan& visit)>;

/// What every rank sends to every other rank.
struct AllPairs {
  std::int64_t length = 0;  ///< bytes
  bool reduce = false;
};

/// Consecutive rounds whose transfers differ only in their offsets. A simulation may therefore fold them.
struct Stage {
  std::int64_t rounds = 1;  ///< above zero
  /// Appends the transfers of one round (0 <= round < rounds), in an order that is the same for all rounds.
  std::function<void(std::int64_t round, std::vector<Transfer>& transfers)> expand;
  /// The series that the stage belongs to, and its place there; null: the stage shares no transfers with others.
  std::shared_ptr<const StageSeries> series = nullptr;
  int place = 0;
  std::int64_t transfers = 0;  ///< in a round, where they grow with the square of the ranks; 0: not stated
  std::optional<AllPairs> all_pairs = std::nullopt;  ///< if these are the transfers, each endpoint being alike
};

/// Costs that the protocol under a scheme adds to the fabric's. A negative latency shortens the fabric's, to zero at
/// least. The default adds nothing.
struct ProtocolCost {
  double wire = 1;     ///< bytes on the wire for each byte of payload
  Seconds start{0};    ///< added once for each rank and collective, beside the GPU's launch
  Seconds inside{0};   ///< latency added to each message inside a node
  Seconds between{0};  ///< latency added to each message between nodes
  /// The highest rate of one message inside a node and between nodes, in bytes on the wire.
  BytesPerSecond flow_inside{std::numeric_limits<double>::infinity()};
  BytesPerSecond flow_between{std::numeric_limits<double>::infinity()};
  int connections = 1;             ///< of a transport that limits single connections, over which a message is split
  bool reduction_is_free = false;  ///< true: the protocol's rate includes the reduction
  bool eager = false;              ///< true: a source does not wait for its destination (see Schedule)
  /// Factor on each latency, the fabric's too, and on reductions; `wire` and `start` contain it (see stretched()).
  double stretch = 1;

  /// The same costs, with which a schedule alone takes `factor` times as long, but for the launch of its kernel.
  ProtocolCost stretched(double factor) const {
    ProtocolCost cost = *this;
    cost.wire *= factor, cost.start *= factor, cost.stretch *= factor;
    return cost;
  }
};

/// Rounds of transfers; each endpoint has one buffer. These rules say how a schedule is executed, and every simulation
/// implements them:
///  - An endpoint enters round 0 when it enters the collective, and round r + 1 when all its transfers of round r are
///    done. It does not wait in a round in which it has no transfer. Switches enter the collective at once.
///  - A transfer starts when both of its ends have entered its round. It carries what its source held on entering the
///    round.
///  - A transfer is done for its source when all bytes have arrived, and for its destination when the destination has
///    also added them, if it reduces. A rank adds one transfer at a time and moves kMemoryBytesPerReducedByte bytes of
///    memory for each byte; a switch adds in passing.
///  - With an eager protocol a transfer starts when its source has entered the round, and occupies links from then on.
///    It is done for its source when its last byte has left. It reaches its destination one latency later and waits
///    there until the destination enters the round. So a latency costs time only if something depends on the bytes, not
///    in every round.
///  - Lanes (NCCL calls them channels) run side by side: an endpoint goes through the rounds of each lane separately,
///    and a rank is done when it is done in all lanes. Lanes touch different bytes, and their reduction is free.
///  - Within a round no byte of an endpoint is both replaced and written by another transfer, so the order of arrival
///    does not matter.
class Schedule {
 public:
  /// `bytes` is the length of each endpoint's buffer: the payload, padded if the scheme divides it into equal chunks.
  /// Requires 0 < ranks <= endpoints, bytes >= 0, and stages whose `expand` always gives the same answer for a round.
  Schedule(int ranks, int endpoints, std::int64_t bytes, std::vector<Stage> stages, ProtocolCost cost = {});
  Schedule(int ranks, std::int64_t bytes, std::vector<Stage> stages)
      : Schedule(ranks, ranks, bytes, std::move(stages)) {}

  int ranks() const { return ranks_; }
  int endpoints() const { return endpoints_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t rounds() const { return rounds_; }
  const std::vector<Stage>& stages() const { return stages_; }
  const ProtocolCost& cost() const { return cost_; }
  void set_cost(const ProtocolCost& cost) { cost_ = cost; }

  /// The choice of a scheme that adapts to the machine, for example "ring, LL128"; else empty.
  const std::string& note() const { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }

  int lanes() const { return lanes_; }
  void set_lanes(int lanes) { lanes_ = lanes; }

  /// Replaces `transfers` by those of round `index` (0 <= index < rounds()), in a fixed order; reuses its memory.
  void round(std::int64_t index, std::vector<Transfer>& transfers) const;

  /// Visits the transfers of all stages. Those of a series are visited once for all of its stages. Offsets are those of
  /// some round.
  void visit_spans(const VisitSpan& visit) const;

  /// True if the ranks could change places in every stage.
  bool is_all_pairs() const;
  /// Throws Infeasible if a list of the transfers of all stages takes more than a gigabyte, and says how much.
  void check_list() const;

  /// The number of transfers in all rounds.
  std::int64_t messages() const;
  /// The messages, each counted as often as it takes the time of one that is alone to simulate it beside the others of
  /// its round.
  double work() const;

 private:
  void visit_stage(int number, const VisitSpan& visit) const;

  int ranks_;
  int endpoints_;
  std::int64_t bytes_;
  std::int64_t rounds_ = 0;
  std::vector<Stage> stages_;
  std::vector<std::int64_t> first_;  // the first round of each stage
  ProtocolCost cost_;
  int lanes_ = 1;
  std::string note_;
};

/// Returns the least multiple of `parts` that is at least `bytes`. Buffers are padded so that all chunks are equal, as
/// Horovod and ZeRO do.
std::int64_t padded(std::int64_t bytes, std::int64_t parts);

}  // namespace ganymede::sim
