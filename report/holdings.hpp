#pragma once
// How many nodes a run held at each time, from the events of a result.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::report {

/// The nodes of a pool between two changes.
struct Holding {
  std::string pool;
  double from_s = 0, to_s = 0;
  int held = 0;   ///< granted and started
  int asked = 0;  ///< requested and not there yet
};

/// The holdings of a `ganymede.result/1`, ordered by their start. Times at which a pool has neither held nor asked
/// nodes are left out.
std::vector<Holding> holdings_of(const Json& run);

}  // namespace ganymede::report
