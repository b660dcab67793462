#pragma once
// What several schemes are made of.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede {

/// One rank or no bytes: nothing is sent.
inline bool is_trivial(const PlanRequest& request) { return request.topology.ranks == 1 || request.bytes == 0; }
Schedule nothing(const PlanRequest& request);

/// 0 … count - 1.
std::vector<int> natural_order(int count);

/// Cyclic orders of a node's GPUs that use no link twice; the natural one where no other is known.
std::vector<std::vector<int>> inside_cycles(const Topology& topology);
/// A ring over all ranks: each node's members in the order of `cycle`, starting at the GPU of NIC `index`, node after
/// node.
std::vector<int> ring_over_nodes(const Topology& topology, const std::vector<int>& cycle, int index);

/// The rings of `multi-ring`, in common rounds or each in a lane of its own; the bytes in so many passes, one after the
/// other.
Schedule plan_rings(const PlanRequest& request, bool in_lanes, std::int64_t passes);

/// One round (0 <= round < n - 1) of the reduce-scatter (`reduce`) or the all-gather of a ring over `order`, whose n
/// members cut [offset, offset + n x chunk) into n chunks. Before the all-gather, and after the reduce-scatter, the
/// member at place p holds chunk (p + 1) % n.
void append_ring_half(const std::vector<int>& order, std::int64_t offset, std::int64_t chunk, bool reduce,
                      std::int64_t round, std::vector<Transfer>& transfers);

/// A tree over endpoints, up which sums flow and down which the total flows back, chunk after chunk.
struct Tree {
  std::vector<int> parent;  ///< by endpoint; -1: the root; kNotInTree: not a member
  std::int64_t offset = 0;  ///< of the tree's part of the buffer
  std::int64_t chunk = 0;   ///< bytes
  int lane = 0;             ///< of its transfers
  static constexpr int kNotInTree = -2;
};
enum class Flow { up, down, both };

/// The rounds of trees that work at the same time, each on `chunks` chunks: chunk c leaves the members at depth d
/// upward in round c + D - d, D being the greatest depth, and reaches them downward in round c + D + d - 1 (without the
/// way up: c + d - 1).
std::vector<Stage> tree_stages(std::vector<Tree> trees, std::int64_t chunks, Flow flow);

/// A double binary tree over the nodes for each NIC of a node, each tree in a lane of its own, whose nodes chain their
/// GPUs to that NIC's.
Schedule plan_channel_trees(const PlanRequest& request);

/// Chunks of a pipeline over `bytes`: as many as the variant says, else of about 512 KiB, at most 64. A chunk of 512
/// KiB spends 42 us on a 12.5 GB/s link, several times a hop's latency, so cutting finer gains little; and 64 chunks
/// make the filling of a pipeline of ten hops a sixth of its time, while each chunk more is simulated.
std::int64_t pipeline_chunks(const PlanRequest& request);

/// "knows no broadcast" unless the collective is one of these.
std::optional<std::string> only(const PlanRequest& request, std::initializer_list<Collective> known);
/// A variant is not understood, unless it is empty.
std::optional<std::string> no_variant(const PlanRequest& request);
/// The variant as a number from `low` to `high`; nullopt when it is none.
std::optional<std::int64_t> number_variant(const PlanRequest& request, std::int64_t low, std::int64_t high);
/// The variant is empty or a number of pipeline chunks.
std::optional<std::string> chunks_variant(const PlanRequest& request);

}  // namespace ganymede
