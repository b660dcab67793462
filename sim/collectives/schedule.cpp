#include "sim/collectives/schedule.hpp"

#include <cassert>
#include <utility>

namespace ganymede {

Schedule::Schedule(int ranks, std::int64_t bytes, std::int64_t rounds, Expand expand)
    : ranks_(ranks), bytes_(bytes), rounds_(rounds), expand_(std::move(expand)) {
  assert(ranks > 0 && bytes >= 0 && rounds >= 0);
  assert(expand_ || rounds == 0);
}

void Schedule::round(std::int64_t index, std::vector<Transfer>& transfers) const {
  assert(0 <= index && index < rounds_);
  transfers.clear();
  expand_(index, transfers);
}

}  // namespace ganymede
