#pragma once
// Which GPUs of a pool are taken, and by whom.

#include <vector>

#include "policies/schedulers/placement.hpp"

namespace ganymede::sim {

/// A GPU of a pool's node.
struct GpuSlot {
  int node = 0, gpu = 0;
  auto operator<=>(const GpuSlot&) const = default;
};

/// GPUs that a job holds: half of one that it shares with another job.
inline double gpus_held(const std::vector<GpuSlot>& slots, bool shared) {
  return static_cast<double>(slots.size()) * (shared ? 0.5 : 1);
}

class FreeNodes {
 public:
  FreeNodes(int nodes, int gpus_per_node, int group)
      : free_(static_cast<std::size_t>(nodes), gpus_per_node),
        taken_(static_cast<std::size_t>(nodes), std::vector<bool>(static_cast<std::size_t>(gpus_per_node), false)),
        gpus_per_node_(gpus_per_node),
        group_(group) {}

  int free() const;
  /// Takes so many GPUs by the rule; on each node those with the lowest numbers. Precondition: they are free.
  std::vector<GpuSlot> take(const policies::PlacementRule& rule, int gpus);
  void give(const std::vector<GpuSlot>& slots);

 private:
  std::vector<int> free_;  // by node
  std::vector<std::vector<bool>> taken_;
  int gpus_per_node_, group_;
};

/// GPUs by node, largest first.
std::vector<int> shape_of(const std::vector<GpuSlot>& slots);
/// By rank of a job on these GPUs: the endpoint of its GPU in the fabric of the whole pool. Ranks are numbered node by
/// node, larger shares first, as in the job's shape.
std::vector<int> members_of(std::vector<GpuSlot> slots, int gpus_per_node);

}  // namespace ganymede::sim
