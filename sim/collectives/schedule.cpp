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

void Schedule::visit_spans(const VisitSpan& visit) const {
  std::vector<Transfer> transfers;
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) {
    const Stage& stage = stages_[static_cast<std::size_t>(number)];
    if (stage.series) {
      if (stage.place == 0)
        (*stage.series)(
            [&](const Transfer& transfer, int first, int end) { visit(transfer, number + first, number + end); });
      continue;
    }
    transfers.clear();
    stage.expand(0, transfers);
    for (const Transfer& transfer : transfers) visit(transfer, number, number + 1);
  }
}

std::int64_t Schedule::messages() const {
  std::vector<std::int64_t> first = first_;
  first.push_back(rounds_);
  std::int64_t messages = 0;
  visit_spans([&](const Transfer& /*transfer*/, int from, int to) {
    messages += first[static_cast<std::size_t>(to)] - first[static_cast<std::size_t>(from)];
  });
  return messages;
}

std::int64_t padded(std::int64_t bytes, std::int64_t parts) { return (bytes + parts - 1) / parts * parts; }

}  // namespace ganymede::sim
