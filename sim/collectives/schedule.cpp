#include "sim/collectives/schedule.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ganymede::sim {

Schedule::Schedule(int ranks, int endpoints, std::int64_t bytes, std::vector<Stage> stages, ProtocolCost cost)
    : ranks_(ranks), endpoints_(endpoints), bytes_(bytes), stages_(std::move(stages)), cost_(cost) {
  assert(0 < ranks && ranks <= endpoints && bytes >= 0);
  for (const Stage& stage : stages_) {
    assert(stage.rounds > 0 && stage.expand);
    first_.push_back(rounds_);
    rounds_ += stage.rounds;
  }
}

void Schedule::round(std::int64_t index, std::vector<Transfer>& transfers) const {
  assert(0 <= index && index < rounds_);
  transfers.clear();
  const auto stage =
      static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), index) - first_.begin()) - 1;
  stages_[stage].expand(index - first_[stage], transfers);
}

std::int64_t Schedule::messages() const {
  std::int64_t messages = 0;
  std::vector<Transfer> transfers;
  for (const Stage& stage : stages_) {
    transfers.clear();
    stage.expand(0, transfers);
    messages += stage.rounds * static_cast<std::int64_t>(transfers.size());
  }
  return messages;
}

std::int64_t padded(std::int64_t bytes, std::int64_t parts) { return (bytes + parts - 1) / parts * parts; }

}  // namespace ganymede::sim
