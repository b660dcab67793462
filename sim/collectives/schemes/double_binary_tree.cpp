// Two pipelined trees, each with half of the bytes. A node that is inner in one tree is a leaf of the other, so all
// nodes send and receive alike (Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", 2009). The trees have different roots, so they serve no broadcast.

#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

Schedule plan_double_binary_tree(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const int nodes = request.topology.nodes();
  return pipelined_trees(request, {tree_with_chains(request.topology, first_of_two_trees(nodes), false),
                                   tree_with_chains(request.topology, second_of_two_trees(nodes), true)});
}

}  // namespace

extern const AllReduceScheme double_binary_tree_scheme{
    .name = "double-binary-tree",
    .summary = "two complementary trees, each with half of the bytes",
    .variants = kChunksVariant,
    .plan = plan_double_binary_tree,
    .refusal = refuse_bad_chunks,
};

}  // namespace ganymede::sim
