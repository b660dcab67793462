#include "sim/cluster/free_nodes.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace ganymede::sim {

int FreeNodes::free() const {
  int sum = 0;
  for (const int gpus : free_) sum += gpus;
  return sum;
}

std::vector<GpuSlot> FreeNodes::take(const policies::PlacementRule& rule, int gpus) {
  std::vector<GpuSlot> slots;
  for (const policies::NodeShare& share : rule.place({free_, gpus_per_node_, group_}, gpus)) {
    const auto node = static_cast<std::size_t>(share.node);
    free_[node] -= share.gpus;
    int left = share.gpus;
    for (int gpu = 0; left > 0; ++gpu) {
      if (taken_[node][static_cast<std::size_t>(gpu)]) continue;
      taken_[node][static_cast<std::size_t>(gpu)] = true;
      slots.push_back({share.node, gpu});
      --left;
    }
  }
  return slots;
}

void FreeNodes::give(const std::vector<GpuSlot>& slots) {
  for (const GpuSlot& slot : slots) {
    ++free_[static_cast<std::size_t>(slot.node)];
    taken_[static_cast<std::size_t>(slot.node)][static_cast<std::size_t>(slot.gpu)] = false;
  }
}

std::vector<int> shape_of(const std::vector<GpuSlot>& slots) {
  std::map<int, int> by_node;
  for (const GpuSlot& slot : slots) ++by_node[slot.node];
  std::vector<int> shape;
  for (const auto& [node, gpus] : by_node) shape.push_back(gpus);
  std::sort(shape.begin(), shape.end(), std::greater<>());
  return shape;
}

std::vector<int> members_of(std::vector<GpuSlot> slots, int gpus_per_node) {
  std::map<int, int> of_node;
  for (const GpuSlot& slot : slots) ++of_node[slot.node];
  std::stable_sort(slots.begin(), slots.end(), [&](const GpuSlot& a, const GpuSlot& b) {
    return of_node[a.node] != of_node[b.node] ? of_node[a.node] > of_node[b.node] : a < b;
  });
  std::vector<int> members;
  for (const GpuSlot& slot : slots) members.push_back(slot.node * gpus_per_node + slot.gpu);
  return members;
}

}  // namespace ganymede::sim
