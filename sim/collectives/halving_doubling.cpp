// Recursive halving, then doubling (Rabenseifner): a reduce-scatter in which round k exchanges half of what is left
// with the rank whose number differs in bit k, so that the largest exchange is with the nearest rank; then an
// all-gather the same way back.

#include <fmt/format.h>

#include "sim/collectives/doubling.hpp"
#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

/// Which of the 2^bits pieces rank holds after `bits` rounds of halving: its lowest bit chose the first half.
std::int64_t piece_of(int rank, int bits) {
  std::int64_t piece = 0;
  for (int bit = 0; bit < bits; ++bit) piece = 2 * piece + (rank >> bit & 1);
  return piece;
}

/// Round `bit` of the halving (`reduce`), or of the doubling, which undoes it.
Stage exchange(int power, int bit, std::int64_t whole, bool reduce) {
  return {1, [=](std::int64_t /*round*/, std::vector<Transfer>& out) {
            const std::int64_t length = whole >> (bit + 1);
            for (int rank = 0; rank < power; ++rank) {
              const int peer = rank ^ (1 << bit);
              const int keeper = reduce ? peer : rank;  // each sends what the other keeps, or what it has itself
              out.push_back({rank, peer, piece_of(keeper, bit + 1) * length, length, reduce});
            }
          }};
}

}  // namespace

WhyNot halving_doubling_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  const int ranks = request.topology.ranks;
  if (request.collective != Collective::all_reduce && power_below(ranks) != ranks)
    return fmt::format("needs a power of two of ranks for a {}, found {}", to_string(request.collective), ranks);
  return only(request, {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather});
}

Schedule plan_halving_doubling(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const int n = request.topology.ranks, power = power_below(n), rounds = log2_of(power);
  const std::int64_t whole = padded(request.bytes, power);
  std::vector<Stage> stages;
  if (request.collective != Collective::all_gather) {
    append_surplus(n, whole, true, stages);
    for (int bit = 0; bit < rounds; ++bit) stages.push_back(exchange(power, bit, whole, true));
  }
  if (request.collective != Collective::reduce_scatter) {
    for (int bit = rounds - 1; bit >= 0; --bit) stages.push_back(exchange(power, bit, whole, false));
    append_surplus(n, whole, false, stages);
  }
  return Schedule(n, request.topology.endpoints(), whole, std::move(stages));
}

// Either way the exchanges carry S/2, S/4, … S/p, in all S (p-1)/p, in log2(p) messages; those on the way in are added.
// With surplus ranks one message of S more at either end.
Seconds halving_doubling_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const int power = power_below(request.topology.ranks);
  const double rounds = log2_of(power), surplus = power == request.topology.ranks ? 0 : 1;
  const Bytes whole{static_cast<double>(padded(request.bytes, power))};
  const Bytes halves = whole * (static_cast<double>(power - 1) / power);
  return 2 * (halves / star.bandwidth + rounds * star.latency) + reduction(halves, star) +
         surplus * (2 * (whole / star.bandwidth + star.latency) + reduction(whole, star));
}

}  // namespace ganymede
