// A pipelined tree: binary over the nodes, and inside each node a chain that ends at the GPU that is in the tree over
// nodes. NCCL builds its trees like this (Jeaugey, "Massively scale your deep learning training with NCCL 2.4", 2019).

#include "sim/collectives/schedule_builders.hpp"
#include "sim/collectives/scheme_variants.hpp"

namespace ganymede::sim {
namespace {

Schedule plan_tree(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const auto heap_parent = [](int node) { return node == 0 ? Tree::kRoot : (node - 1) / 2; };
  return pipelined_trees(request, {tree_with_chains(request.topology, heap_parent, false)});
}

}  // namespace

extern const AllReduceScheme tree_scheme{
    .name = "tree",
    .summary = "pipelined binary tree over nodes, chains inside",
    .variants = kChunksVariant,
    .collectives = {Collective::all_reduce, Collective::broadcast, Collective::reduce},
    .plan = plan_tree,
    .refusal = refuse_bad_chunks,
};

}  // namespace ganymede::sim
