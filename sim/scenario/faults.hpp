#pragma once
// Troubles of a run besides the loss of spot nodes: crashes, slowdowns, and events at given times.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// Something that becomes slower for a while, at random times.
struct Slowdown {
  Seconds every{0};  ///< Mean time between two starts: per node (straggler), or for the whole run (network, storage).
  /// Straggler: its steps take `factor` times as long. Network and storage: share of the rate that is left.
  double factor = 1;
  Seconds lasts{0};
};

/// One fault at a given time.
struct InjectedEvent {
  enum class Kind { interruption, crash, straggler, network, storage };
  Kind kind = Kind::interruption;
  Seconds at{0};
  std::size_t pool = 0;  ///< Index of the pool whose nodes it hits.
  int nodes = 1;
  double factor = 1;  ///< As Slowdown::factor; unused for interruptions and crashes.
  Seconds lasts{0};   ///< Duration; unused for interruptions and crashes.
};

struct Faults {
  std::optional<Seconds> crash;  ///< Mean time between crashes of one node.
  std::optional<Slowdown> straggler, network, storage;
  std::vector<InjectedEvent> events;
};

}  // namespace ganymede::sim
