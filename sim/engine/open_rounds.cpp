#include "sim/engine/open_rounds.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace ganymede::sim {

const QuotientStage& stage_at(const QuotientCall& call, std::int64_t round) {
  assert(round >= call.stages.front().first_round);
  const auto next = std::upper_bound(call.stages.begin(), call.stages.end(), round,
                                     [](std::int64_t r, const QuotientStage& stage) { return r < stage.first_round; });
  return *std::prev(next);
}

OpenRounds::OpenRounds(const Quotient& quotient) : quotient_(quotient) {
  for (const auto& calls : quotient.calls) {
    rounds_.emplace_back(calls.size());
    class_counts_.emplace_back(calls.size());
  }
  for (const QuotientRank& rank : quotient.ranks)
    for (std::size_t call = 0; call < rank.takes_part.size(); ++call)
      class_counts_[static_cast<std::size_t>(rank.communicator)][call] += rank.takes_part[call] ? 1 : 0;
}

const OpenRounds::Rounds& OpenRounds::of_call(int communicator, std::size_t call) const {
  return rounds_[static_cast<std::size_t>(communicator)][call];
}

OpenRound& OpenRounds::enter(int communicator, std::size_t call, std::int64_t round) {
  const auto number = static_cast<std::size_t>(communicator);
  OpenRound& open = rounds_[number][call][round];
  if (open.classes_left > 0) return open;
  const QuotientStage& stage = stage_at(quotient_.calls[number][call], round);
  open.ready.assign(stage.transfers.size(), 0);
  open.arriving.resize(stage.transfers.size());
  for (std::size_t i = 0; i < stage.transfers.size(); ++i)
    open.arriving[i] = static_cast<std::uint8_t>(quotient_.transfer(stage, static_cast<int>(i)).flows.size());
  open.leaving = open.arriving;
  open.classes_left = class_counts_[number][call];
  return open;
}

OpenRound& OpenRounds::at(int communicator, std::size_t call, std::int64_t round) {
  return rounds_[static_cast<std::size_t>(communicator)][call].at(round);
}

void OpenRounds::leave(int communicator, std::size_t call, std::int64_t round) {
  auto& rounds = rounds_[static_cast<std::size_t>(communicator)][call];
  const auto found = rounds.find(round);
  if (--found->second.classes_left == 0) rounds.erase(found);
}

void OpenRounds::advance(int communicator, std::size_t call, std::int64_t rounds) {
  auto& open = rounds_[static_cast<std::size_t>(communicator)][call];
  Rounds advanced;
  for (auto& [number, round] : open) advanced.emplace(number + rounds, std::move(round));
  open = std::move(advanced);
}

}  // namespace ganymede::sim
