// Recursive halving, then doubling (Rabenseifner). The halving is a reduce-scatter: in round k ranks whose numbers
// differ in bit k exchange half of what they still hold, so the largest exchange is with the nearest rank. The doubling
// is an all-gather by the same exchanges in reverse order.

#include <fmt/format.h>

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

/// The index of the piece, of 2^bits, that `rank` holds after `bits` rounds of halving; its lowest bit chose the first
/// half.
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
              const int keeper = reduce ? peer : rank;  // halving sends the peer's piece, doubling the rank's own
              out.push_back({rank, peer, piece_of(keeper, bit + 1) * length, length, reduce});
            }
          }};
}

std::optional<std::string> refuse_halving_doubling(const PlanRequest& request) {
  const int ranks = request.topology.ranks;
  if (request.collective == Collective::all_reduce || power_of_two_below(ranks) == ranks) return std::nullopt;
  return fmt::format("needs a power of two of ranks for a {}, found {}", to_string(request.collective), ranks);
}

Schedule plan_halving_doubling(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const int n = request.topology.ranks, power = power_of_two_below(n), rounds = log2_of(power);
  const std::int64_t whole = padded(request.bytes, power);
  std::vector<Stage> stages;
  if (request.collective != Collective::all_gather) {
    append_surplus_round(n, whole, true, stages);
    for (int bit = 0; bit < rounds; ++bit) stages.push_back(exchange(power, bit, whole, true));
  }
  if (request.collective != Collective::reduce_scatter) {
    for (int bit = rounds - 1; bit >= 0; --bit) stages.push_back(exchange(power, bit, whole, false));
    append_surplus_round(n, whole, false, stages);
  }
  return Schedule(n, request.topology.endpoints(), whole, std::move(stages));
}

// The halving carries S/2, S/4, ... S/p, in sum S (p-1)/p, in log2(p) messages, which are added; the doubling carries
// as much. Surplus ranks need one more message of S before and one after.
Seconds halving_doubling_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const int power = power_of_two_below(request.topology.ranks);
  const double rounds = log2_of(power), surplus = power == request.topology.ranks ? 0 : 1;
  const Bytes whole{static_cast<double>(padded(request.bytes, power))};
  const Bytes halves = whole * (static_cast<double>(power - 1) / power);
  return 2 * (halves / star.bandwidth + rounds * star.latency) + reduction(halves, star) +
         surplus * (2 * (whole / star.bandwidth + star.latency) + reduction(whole, star));
}

}  // namespace

extern const AllReduceScheme halving_doubling_scheme{
    .name = "halving-doubling",
    .summary = "bandwidth-optimal in 2 log2(n) rounds",
    .needs = "a power of two of ranks for all but all-reduce",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .plan = plan_halving_doubling,
    .refusal = refuse_halving_doubling,
    .on_star = halving_doubling_on_star,
};

}  // namespace ganymede::sim
