#include "rehearsal/rank_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

/// True if all transfers begin and end between two floats.
bool is_aligned(const sim::Schedule& schedule) {
  bool aligned = schedule.bytes() % kFloat == 0;
  std::vector<sim::Transfer> transfers;
  for (std::int64_t round = 0; aligned && round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const sim::Transfer& transfer : transfers)
      aligned = aligned && transfer.offset % kFloat == 0 && transfer.length % kFloat == 0;
  }
  return aligned;
}

void check_messages(const sim::Schedule& schedule) {
  if (schedule.messages() > RankPlan::kMaxMessages)
    throw ConfigError(fmt::format("the schedule has {} messages, expected at most {} to execute", schedule.messages(),
                                  RankPlan::kMaxMessages));
}

}  // namespace

sim::Schedule plan_for_processes(const sim::Scheme& scheme, const sim::Topology& topology, std::int64_t bytes) {
  // Schemes divide a buffer into equal parts, by ranks, nodes and lanes: a multiple of all of them is aligned.
  constexpr int kMostDivisions = 64;
  std::int64_t unit = kFloat;
  for (int divisions = 1; divisions <= kMostDivisions; divisions *= 2) {
    unit = kFloat * topology.ranks * divisions;
    const std::int64_t whole = sim::padded(bytes, divisions == 1 ? kFloat : unit);
    sim::Schedule schedule = scheme.plan({topology, whole, sim::Collective::all_reduce, ""});
    if (schedule.endpoints() > schedule.ranks())
      throw sim::SchemeRefused(fmt::format("{}: needs switches that reduce, and no process is one", scheme.name()));
    check_messages(schedule);
    if (!is_aligned(schedule)) continue;
    schedule.set_cost({.eager = true});
    return schedule;
  }
  throw sim::SchemeRefused(fmt::format("{}: divides {} bytes between the bytes of a float; expected a multiple of {}",
                                       scheme.name(), bytes, unit));
}

RankPlan::RankPlan(const sim::Schedule& schedule, int rank)
    : lanes_(static_cast<std::size_t>(schedule.lanes())), floats_(static_cast<std::size_t>(schedule.bytes() / kFloat)) {
  check_messages(schedule);
  std::vector<sim::Transfer> transfers;
  for (std::int64_t number = 0; number < schedule.rounds(); ++number) {
    schedule.round(number, transfers);
    for (const sim::Transfer& transfer : transfers) {
      if (transfer.source != rank && transfer.destination != rank) continue;
      auto& rounds = lanes_[static_cast<std::size_t>(transfer.lane)];
      if (rounds.empty() || rounds.back().number != number) rounds.push_back({number, {}, {}});
      (transfer.source == rank ? rounds.back().sends : rounds.back().receives).push_back(transfer);
    }
  }
}

}  // namespace ganymede::rehearsal
