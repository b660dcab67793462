// All-reduce on a torus: rings along the first dimension reduce and scatter, rings along the next dimension do the same
// with the share that each rank still holds, and so on; all-gathers in reverse order follow. Half of the bytes goes
// round in each direction, since links are full duplex (Jouppi et al., "TPU v4", 2023, describe the topology; Sack and
// Gropp, "Collective algorithms for multiported torus networks", 2015, the scheme).

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxDimensions = 3;

/// Parses "8x4" as {8, 4}; empty for bad input.
std::vector<int> parse_shape(const std::string& text) {
  std::vector<int> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int length = 0;
    const auto [stop, error] = std::from_chars(at, end, length);
    if (error != std::errc() || length < 1) return {};
    shape.push_back(length);
    if (stop == end) return shape;
    if (*stop != 'x') return {};
    at = stop + 1;
  }
}

std::vector<int> shape_of(const PlanRequest& request) {
  return request.variant.empty() ? request.topology.torus : parse_shape(request.variant);
}

/// The rings along one dimension.
struct Lines {
  std::vector<std::vector<int>> orders;
  std::vector<std::int64_t> offsets;  ///< first byte that the members of each ring still hold
  std::int64_t chunk = 0;             ///< bytes that each member sends a round
};

/// The rings along `dimension` after the reduce-scatters of the dimensions before it, for the part of the buffer that
/// begins at `base` and is `bytes` long. The rank at (x, y, z) of a torus of X x Y x Z is x + X (y + Y z).
Lines lines_along(const std::vector<int>& shape, std::size_t dimension, std::int64_t base, std::int64_t bytes,
                  bool backward) {
  int stride = 1, ranks = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < dimension) stride *= shape[d];
    ranks *= shape[d];
  }
  const int length = shape[dimension];
  Lines lines;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank / stride % length != 0) continue;
    std::vector<int> order;
    for (int i = 0; i < length; ++i) order.push_back(rank + i * stride);
    if (backward) std::reverse(order.begin(), order.end());
    std::int64_t offset = base, piece = bytes;
    for (int d = 0, rest = rank; d < static_cast<int>(dimension); ++d) {
      const int size = shape[static_cast<std::size_t>(d)];
      const int place = backward ? size - 1 - rest % size : rest % size;
      piece /= size;
      offset += (place + 1) % size * piece;  // what append_ring_round leaves at that place
      rest /= size;
    }
    lines.orders.push_back(std::move(order));
    lines.offsets.push_back(offset);
    lines.chunk = piece / length;
  }
  return lines;
}

std::optional<std::string> refuse_torus(const PlanRequest& request) {
  const auto shape = shape_of(request);
  if (shape.empty() && request.variant.empty())
    return "needs a fabric that is a torus, or a shape for the ranks, as in torus:8x4";
  std::int64_t ranks = 1;
  for (const int length : shape) ranks *= length;
  if (shape.empty() || shape.size() > kMaxDimensions || ranks != request.topology.ranks)
    return fmt::format("found \"{}\", expected up to three lengths whose product is the {} ranks, as in 8x4",
                       request.variant, request.topology.ranks);
  return std::nullopt;
}

Schedule plan_torus(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const auto shape = shape_of(request);
  const std::int64_t whole = padded(request.bytes, 2 * std::int64_t{request.topology.ranks});
  std::vector<Stage> in, back;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const std::vector<Lines> both = {lines_along(shape, d, 0, whole / 2, false),
                                     lines_along(shape, d, whole / 2, whole / 2, true)};
    const auto stage = [&](bool reduce) {
      return Stage{shape[d] - 1, [both, reduce](std::int64_t round, std::vector<Transfer>& out) {
                     for (const Lines& lines : both)
                       for (std::size_t i = 0; i < lines.orders.size(); ++i)
                         append_ring_round(lines.orders[i], lines.offsets[i], lines.chunk, reduce, round, out);
                   }};
    };
    in.push_back(stage(true));
    back.insert(back.begin(), stage(false));
  }
  std::vector<Stage> stages;
  if (request.collective != Collective::all_gather) stages = in;
  if (request.collective != Collective::reduce_scatter) stages.insert(stages.end(), back.begin(), back.end());
  return Schedule(request.topology.ranks, request.topology.endpoints(), whole, std::move(stages));
}

// On a star both directions share each link, so a round along dimension d carries S/(n_1 ... n_d) bytes over each link;
// there are 2 (n_d - 1) such rounds.
Seconds torus_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  Bytes piece{static_cast<double>(padded(request.bytes, 2 * std::int64_t{request.topology.ranks}))};
  Seconds total{0};
  for (const int length : shape_of(request)) {
    piece = piece / length;
    total += (length - 1) * (2 * (piece / star.bandwidth + star.latency) + reduction(piece, star));
  }
  return total;
}

}  // namespace

extern const AllReduceScheme torus_scheme{
    .name = "torus",
    .summary = "rings along the dimensions of a torus, one after the other",
    .variants = "shape, as 8x4",
    .needs = "a fabric that is a torus, or a shape whose product is the number of ranks",
    .collectives = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather},
    .plan = plan_torus,
    .refusal = refuse_torus,
    .on_star = torus_on_star,
};

}  // namespace ganymede::sim
