#include "sim/collectives/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/text.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

constexpr const char* kChunks = "number of pipeline chunks";

// The only list of schemes.
constexpr AllReduceScheme kSchemes[] = {
    {"ring", "bandwidth-optimal: 2(n-1) rounds of one n-th of the bytes", "", plan_ring, ring_why_not, ring_on_star},
    {"multi-ring", "rings over all links at once: both directions, every NIC", "number of rings", plan_multi_ring,
     multi_ring_why_not, multi_ring_on_star},
    {"tree", "pipelined binary tree over nodes, chains inside", kChunks, plan_tree, tree_why_not, nullptr},
    {"double-binary-tree", "two complementary trees, each with half of the bytes", kChunks, plan_double_binary_tree,
     double_binary_tree_why_not, nullptr},
    {"recursive-doubling", "fewest rounds, log2(n) exchanges of all bytes", "", plan_recursive_doubling,
     recursive_doubling_why_not, recursive_doubling_on_star},
    {"halving-doubling", "bandwidth-optimal in 2 log2(n) rounds", "", plan_halving_doubling, halving_doubling_why_not,
     halving_doubling_on_star},
    {"hierarchical-copy", "reduce inside groups, then across their mains, and copy back, as in TensorFlow", "",
     plan_hierarchical_copy, hierarchical_copy_why_not, hierarchical_copy_on_star},
    {"two-level", "reduce inside the node, ring across, broadcast inside", "sharded", plan_two_level, two_level_why_not,
     nullptr},
    {"reduce-to-one", "all send to rank 0, which adds up and sends the sum to all", "", plan_reduce_to_one,
     reduce_to_one_why_not, reduce_to_one_on_star},
    {"parameter-server", "push to servers on the ranks, pull the sums",
     "sharded, whole, all or number of servers; asynchronous: dedicated or dedicated/NUMBER", plan_parameter_server,
     parameter_server_why_not, parameter_server_on_star},
    {"torus", "rings along the dimensions of a torus, one after the other", "shape, as 8x4", plan_torus, torus_why_not,
     torus_on_star},
    {"in-network", "switches add in passing and multicast the sum", kChunks, plan_in_network, in_network_why_not,
     nullptr},
    {"mixed", "for nodes of unlike GPUs: ring inside, parameter server across", "", plan_mixed, mixed_why_not, nullptr},
    {"nccl", "NCCL's choice: ring, tree or NVLS with LL, LL128 or Simple", "version/algorithm/protocol, as 2.18.3/ring",
     plan_nccl, nccl_why_not, nullptr},
};

}  // namespace

std::string_view to_string(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all-reduce";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::all_gather:
      return "all-gather";
    case Collective::broadcast:
      return "broadcast";
  }
  return "";
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const auto collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast})
    names.emplace_back(to_string(collective));
  return names;
}

std::span<const AllReduceScheme> allreduce_schemes() { return kSchemes; }

std::vector<std::string> allreduce_scheme_names() {
  std::vector<std::string> names;
  for (const AllReduceScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

const AllReduceScheme& find_scheme(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSchemes), std::end(kSchemes),
                                   [name](const AllReduceScheme& scheme) { return scheme.name == name; });
  if (found != std::end(kSchemes)) return *found;

  const std::vector<std::string> names = allreduce_scheme_names();
  std::string message = "unknown all-reduce scheme \"" + std::string(name) + "\", expected " + list_of(names);
  if (const auto meant = nearest(name, names)) message += "; did you mean \"" + *meant + "\"?";
  throw ConfigError(message);
}

std::string Scheme::name() const { return std::string(row->name) + (variant.empty() ? "" : ":" + variant); }

Schedule Scheme::plan(PlanRequest request) const {
  request.variant = variant;
  if (const auto why = row->why_not(request))
    throw ConfigError(fmt::format("scheme {} on {} ranks in {} nodes: {}", name(), request.topology.ranks,
                                  request.topology.nodes(), *why));
  return row->plan(request);
}

Scheme parse_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  const AllReduceScheme& row = find_scheme(text.substr(0, colon));
  if (colon == std::string_view::npos) return {&row, ""};
  const std::string variant(text.substr(colon + 1));
  if (row.variants.empty() || variant.empty())
    throw ConfigError(fmt::format("scheme \"{}\": {}", text,
                                  row.variants.empty() ? fmt::format("{} has no variants", row.name)
                                                       : fmt::format("after the colon, expected {}", row.variants)));
  return {&row, variant};
}

Scheme read_scheme(const JsonNode& node) {
  const std::string text = node.as_string();
  if (text.find(':') == std::string::npos) return {&find_scheme(node.as_choice(allreduce_scheme_names())), ""};
  try {
    return parse_scheme(text);
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
}

}  // namespace ganymede
