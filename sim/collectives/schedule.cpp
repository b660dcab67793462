#include "sim/collectives/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/errors.hpp"

namespace ganymede::sim {
namespace {

/// What a simulation keeps of a transfer: measured, 57 bytes on a switch and 73 on a fat tree (parameter-server:all on
/// 4,096 ranks, 1.9 and 2.4 GB).
constexpr double kListBytesOfTransfer = 73;
constexpr double kMostListBytes = 1e9;

}  // namespace

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

void Schedule::visit_stage(int number, const VisitSpan& visit) const {
  const Stage& stage = stages_[static_cast<std::size_t>(number)];
  if (stage.series) {
    if (stage.place == 0)
      (*stage.series)(
          [&](const Transfer& transfer, int first, int end) { visit(transfer, number + first, number + end); });
    return;
  }
  std::vector<Transfer> transfers;
  stage.expand(0, transfers);
  for (const Transfer& transfer : transfers) visit(transfer, number, number + 1);
}

void Schedule::visit_spans(const VisitSpan& visit) const {
  check_list();
  for (int number = 0; number < static_cast<int>(stages_.size()); ++number) visit_stage(number, visit);
}

bool Schedule::is_all_pairs() const {
  return !stages_.empty() &&
         std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.all_pairs.has_value(); });
}

void Schedule::check_list() const {
  double bytes = 0;
  for (const Stage& stage : stages_) bytes += kListBytesOfTransfer * static_cast<double>(stage.transfers);
  if (bytes > kMostListBytes)
    throw Infeasible(fmt::format(
        "a list of the messages of {} ranks would take {:.3g} GB, expected at most {:g} GB; fewer servers send fewer",
        ranks_, bytes / 1e9, kMostListBytes / 1e9));
}

std::int64_t Schedule::messages() const {
  std::vector<std::int64_t> first = first_;
  first.push_back(rounds_);
  std::int64_t messages = 0;
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    messages += stages_[number].rounds * stages_[number].transfers;
    if (stages_[number].transfers > 0) continue;
    visit_stage(static_cast<int>(number), [&](const Transfer& /*transfer*/, int from, int to) {
      messages += first[static_cast<std::size_t>(to)] - first[static_cast<std::size_t>(from)];
    });
  }
  return messages;
}

double Schedule::work() const {
  // Processor time of a message on p3.16xlarge with 64 MiB (--fidelity message): in a ring, where all of a round end
  // together, 2.7 us of 256 ranks, 3.0 of 512, 3.7 of 1,024; in recursive-doubling 17 of 512, 19 of 1,024, 34 of 2,048,
  // 83 of 4,096 and more than 300 of 8,192. Up to 500 in a round count singly, and more in proportion to their number:
  // a sixth to a third of what recursive-doubling takes beside a small ring, and more than a ring takes. The number
  // does not tell the two apart; 50 million let pass recursive-doubling of 8,192 ranks and a ring of 2,048, each of
  // about half a minute, and refuse a ring of 4,096, of two minutes.
  constexpr double kOthers = 500;
  const auto all = static_cast<double>(messages());
  return rounds_ == 0 ? all : all * std::max(1.0, all / static_cast<double>(rounds_) / kOthers);
}

std::int64_t padded(std::int64_t bytes, std::int64_t parts) { return (bytes + parts - 1) / parts * parts; }

}  // namespace ganymede::sim
