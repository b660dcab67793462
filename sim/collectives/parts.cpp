#include "sim/collectives/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>
#include <set>

namespace ganymede {
namespace {

constexpr std::int64_t kChunk = 512 << 10;
constexpr std::int64_t kMaxChunks = 64;
constexpr std::int64_t kMaxChunksAsked = 65536;

/// A member's edge to its parent.
struct Edge {
  int child, parent;
  int depth;  // of the child, from 1
  std::size_t tree;
};

struct Forest {
  std::vector<Tree> trees;
  std::vector<Edge> edges;
  std::vector<int> height;  // by tree: the greatest depth
  std::int64_t chunks;
  Flow flow;

  std::int64_t up_start(const Edge& edge) const { return height[edge.tree] - edge.depth; }
  std::int64_t down_start(const Edge& edge) const {
    return flow == Flow::down ? edge.depth - 1 : height[edge.tree] + edge.depth - 1;
  }

  void round(std::int64_t index, std::vector<Transfer>& transfers) const {
    for (const Edge& edge : edges) {
      const Tree& tree = trees[edge.tree];
      if (const std::int64_t chunk = index - up_start(edge); flow != Flow::down && 0 <= chunk && chunk < chunks)
        transfers.push_back({edge.child, edge.parent, tree.offset + chunk * tree.chunk, tree.chunk, true, tree.lane});
      if (const std::int64_t chunk = index - down_start(edge); flow != Flow::up && 0 <= chunk && chunk < chunks)
        transfers.push_back({edge.parent, edge.child, tree.offset + chunk * tree.chunk, tree.chunk, false, tree.lane});
    }
  }
};

int depth_of(const std::vector<int>& parent, int endpoint) {
  int depth = 0;
  for (; parent[static_cast<std::size_t>(endpoint)] >= 0; endpoint = parent[static_cast<std::size_t>(endpoint)])
    ++depth;
  return depth;
}

}  // namespace

Schedule nothing(const PlanRequest& request) {
  return Schedule(request.topology.ranks, request.topology.endpoints(), request.bytes, {});
}

std::vector<int> natural_order(int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::vector<int>> inside_cycles(const Topology& topology) {
  const bool whole_nodes = topology.node_sizes.empty() && topology.ranks % topology.gpus_per_node == 0;
  if (whole_nodes && !topology.rings.empty()) return topology.rings;
  return {natural_order(topology.gpus_per_node)};
}

std::vector<int> ring_over_nodes(const Topology& topology, const std::vector<int>& cycle, int index) {
  const int g = topology.gpus_per_node;
  const int start = index % topology.rails * g / topology.rails;
  std::vector<int> order;
  for (int node = 0; node < topology.nodes(); ++node) {
    const int first = topology.first_of(node), size = topology.size_of(node);
    const auto from = std::find(cycle.begin(), cycle.end(), start) - cycle.begin();
    for (int i = 0; i < static_cast<int>(cycle.size()); ++i) {
      const int gpu = cycle[(static_cast<std::size_t>(from) + static_cast<std::size_t>(i)) % cycle.size()];
      if (gpu < size) order.push_back(first + gpu);
    }
  }
  return order;
}

void append_ring_half(const std::vector<int>& order, std::int64_t offset, std::int64_t chunk, bool reduce,
                      std::int64_t round, std::vector<Transfer>& transfers) {
  const auto n = static_cast<std::int64_t>(order.size());
  // Chunk c starts at place c and moves one place a round, so that after n - 1 rounds place c - 1 holds its sum; from
  // there it goes round once more.
  std::int64_t piece = reduce ? (n - round) % n : (n + 1 - round) % n;
  for (std::int64_t place = 0; place < n; ++place) {
    const std::int64_t next = place + 1 == n ? 0 : place + 1;
    transfers.push_back({order[static_cast<std::size_t>(place)], order[static_cast<std::size_t>(next)],
                         offset + piece * chunk, chunk, reduce});
    if (++piece == n) piece = 0;
  }
}

std::vector<Stage> tree_stages(std::vector<Tree> trees, std::int64_t chunks, Flow flow) {
  auto forest = std::make_shared<Forest>(Forest{std::move(trees), {}, {}, chunks, flow});
  for (std::size_t tree = 0; tree < forest->trees.size(); ++tree) {
    const auto& parent = forest->trees[tree].parent;
    forest->height.push_back(0);
    for (int endpoint = 0; endpoint < static_cast<int>(parent.size()); ++endpoint) {
      if (parent[static_cast<std::size_t>(endpoint)] < 0) continue;
      const int depth = depth_of(parent, endpoint);
      forest->edges.push_back({endpoint, parent[static_cast<std::size_t>(endpoint)], depth, tree});
      forest->height.back() = std::max(forest->height.back(), depth);
    }
  }
  // Between these rounds no edge falls idle or becomes busy.
  std::set<std::int64_t> changes;
  for (const Edge& edge : forest->edges) {
    if (flow != Flow::down) changes.insert({forest->up_start(edge), forest->up_start(edge) + chunks});
    if (flow != Flow::up) changes.insert({forest->down_start(edge), forest->down_start(edge) + chunks});
  }
  std::vector<Stage> stages;
  for (auto first = changes.begin(), last = std::next(first); last != changes.end(); first = last++) {
    stages.push_back({*last - *first, [forest, from = *first](std::int64_t round, std::vector<Transfer>& transfers) {
                        forest->round(from + round, transfers);
                      }});
  }
  return stages;
}

std::int64_t pipeline_chunks(const PlanRequest& request) {
  if (const auto asked = number_variant(request, 1, kMaxChunksAsked)) return *asked;
  return std::clamp<std::int64_t>((request.bytes + kChunk - 1) / kChunk, 1, kMaxChunks);
}

std::optional<std::string> only(const PlanRequest& request, std::initializer_list<Collective> known) {
  if (std::find(known.begin(), known.end(), request.collective) != known.end()) return std::nullopt;
  return fmt::format("knows no {}", to_string(request.collective));
}

std::optional<std::string> no_variant(const PlanRequest& request) {
  if (request.variant.empty()) return std::nullopt;
  return fmt::format("has no variants, found \"{}\"", request.variant);
}

std::optional<std::int64_t> number_variant(const PlanRequest& request, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* end = request.variant.data() + request.variant.size();
  const auto [stop, error] = std::from_chars(request.variant.data(), end, value);
  if (request.variant.empty() || error != std::errc() || stop != end || value < low || value > high)
    return std::nullopt;
  return value;
}

std::optional<std::string> chunks_variant(const PlanRequest& request) {
  if (request.variant.empty() || number_variant(request, 1, kMaxChunksAsked)) return std::nullopt;
  return fmt::format("found \"{}\", expected a number of pipeline chunks from 1 to {}", request.variant,
                     kMaxChunksAsked);
}

}  // namespace ganymede
