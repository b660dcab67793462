#include "rehearsal/execution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "common/errors.hpp"

namespace ganymede::rehearsal {
namespace {

// 251 is prime, so that no chunk of a schedule has the period of the numbers.
constexpr std::size_t kPeriod = 251;

float contribution(std::size_t place, int rank) {
  return static_cast<float>((place % kPeriod * 7 + static_cast<std::size_t>(rank) * 13) % 64);
}

}  // namespace

void fill(std::span<float> buffer, int rank) {
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = contribution(i, rank);
}

void add(std::span<float> mine, const float* theirs) {
  // Known lengths, which GCC 12 vectorises at -O2; all ranks of a machine add at the same moments.
  constexpr std::size_t kBlock = 16;
  float* __restrict to = mine.data();
  const float* __restrict from = theirs;
  std::size_t i = 0;
  for (; i + kBlock <= mine.size(); i += kBlock)
    for (std::size_t j = 0; j < kBlock; ++j) to[i + j] += from[i + j];
  for (; i < mine.size(); ++i) to[i] += from[i];
}

std::string fault_in_sum(std::span<const float> buffer, int ranks) {
  std::array<float, kPeriod> sums{};
  for (std::size_t i = 0; i < kPeriod; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[i] += contribution(i, rank);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = buffer.size(); i-- > 0;)
    if (buffer[i] != sums[i % kPeriod]) ++wrong, first = i;
  if (wrong == 0) return "";
  return fmt::format("float {} is {}, expected {}; {} of {} are wrong", first, buffer[first], sums[first % kPeriod],
                     wrong, buffer.size());
}

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

namespace {

bool overlap(const sim::Transfer& a, const sim::Transfer& b) {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

/// Buffers of rounds before: new ones would have to be paged in by the kernel in the time of a round.
thread_local std::vector<std::vector<float>> spare_buffers;

std::vector<float> take_spare(std::size_t floats) {
  std::vector<float> out;
  if (!spare_buffers.empty()) {
    out = std::move(spare_buffers.back());
    spare_buffers.pop_back();
  }
  out.resize(floats);
  return out;
}

}  // namespace

Execution::Execution(const RankPlan& plan, kernel::Messenger& messenger, std::span<float> buffer, int first_tag)
    : plan_(plan), messenger_(messenger), buffer_(buffer), first_tag_(first_tag), lanes_(plan.lanes().size()) {
  assert(buffer.size() == plan.floats());
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (plan.lanes()[lane].empty()) continue;
    ++open_lanes_;
    enter(lane);
  }
}

std::span<float> Execution::part(const sim::Transfer& transfer) const {
  return buffer_.subspan(static_cast<std::size_t>(transfer.offset) / sizeof(float),
                         static_cast<std::size_t>(transfer.length) / sizeof(float));
}

void Execution::enter(std::size_t lane) {
  Lane& mine = lanes_[lane];
  const RankPlan::Round& round = plan_.lanes()[lane][mine.round];
  const int tag = first_tag_ + static_cast<int>(lane);
  // Sends first: others wait for them.
  for (const sim::Transfer& transfer : round.sends)
    mine.sends.push_back({messenger_.send(std::as_bytes(part(transfer)), transfer.destination, tag), &transfer});
  for (const sim::Transfer& transfer : round.receives) {
    // Bytes that this round also sends are as they were on entering it, so what arrives must wait elsewhere.
    const bool is_sent = std::any_of(round.sends.begin(), round.sends.end(),
                                     [&](const sim::Transfer& sent) { return overlap(sent, transfer); });
    Receiving receiving{0, &transfer, {}, false};
    if (transfer.reduce || is_sent) receiving.arrived = take_spare(part(transfer).size());
    const std::span<float> into = receiving.arrived.empty() ? part(transfer) : std::span<float>(receiving.arrived);
    receiving.message = messenger_.receive(std::as_writable_bytes(into), transfer.source, tag);
    mine.receives.push_back(std::move(receiving));
  }
}

bool Execution::can_apply(const Lane& lane, const Receiving& receiving) const {
  return std::none_of(lane.sends.begin(), lane.sends.end(),
                      [&](const Sending& sending) { return overlap(*sending.transfer, *receiving.transfer); });
}

void Execution::apply(Receiving& receiving) const {
  if (receiving.arrived.empty()) return;
  const std::span<float> mine = part(*receiving.transfer);
  if (receiving.transfer->reduce)
    add(mine, receiving.arrived.data());
  else
    std::copy(receiving.arrived.begin(), receiving.arrived.end(), mine.begin());
  spare_buffers.push_back(std::move(receiving.arrived));
}

bool Execution::advance(std::size_t lane) {
  Lane& mine = lanes_[lane];
  const auto sent = std::erase_if(mine.sends, [&](const Sending& sending) { return messenger_.done(sending.message); });
  const auto received = std::erase_if(mine.receives, [&](Receiving& receiving) {
    if (!receiving.complete) receiving.complete = messenger_.done(receiving.message);
    if (!receiving.complete || !can_apply(mine, receiving)) return false;
    apply(receiving);
    return true;
  });
  if (mine.sends.empty() && mine.receives.empty()) {
    if (++mine.round == plan_.lanes()[lane].size())
      --open_lanes_;
    else
      enter(lane);
  }
  return sent + received > 0;
}

bool Execution::progress() {
  bool any = false;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    while (lanes_[lane].round < plan_.lanes()[lane].size() && advance(lane)) any = true;
  return any;
}

std::string Execution::waits_for(const std::function<std::string(int)>& name_of) const {
  std::string out;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].round == plan_.lanes()[lane].size()) continue;
    std::string peers;
    for (const Receiving& receiving : lanes_[lane].receives)
      peers += fmt::format("{}from {}", peers.empty() ? "" : ", ", name_of(receiving.transfer->source));
    for (const Sending& sending : lanes_[lane].sends)
      peers += fmt::format("{}to {}", peers.empty() ? "" : ", ", name_of(sending.transfer->destination));
    out +=
        fmt::format("{}round {}: {}", out.empty() ? "" : "; ", plan_.lanes()[lane][lanes_[lane].round].number, peers);
  }
  return out;
}

}  // namespace ganymede::rehearsal
