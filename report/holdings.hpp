#pragma once
// How many nodes a run held at each time, from the events of a result.

#include <string>
#include <vector>

#include "documents/result.hpp"

namespace ganymede::report {

/// The nodes of a pool between two changes.
struct Holding {
  std::string pool;
  double from_s = 0, to_s = 0;
  int held = 0;   ///< granted and started
  int asked = 0;  ///< requested and not there yet
};

/// The holdings of a run, ordered by their start. Times at which a pool has neither held nor asked
/// nodes are left out.
std::vector<Holding> holdings_of(const documents::Result& run);

}  // namespace ganymede::report
