// Hierarchical copy, after aggregate_gradients_using_hierarchical_copy of TensorFlow 2 (tensorflow/python/distribute/
// cross_device_utils.py), which HierarchicalCopyAllReduce calls: the members of each group send their bytes to the
// group's main device, which adds them up; the mains send their sums to the first main, which adds those up and sends
// the total back to the mains; each main sends it to its group.
//
// TensorFlow knows two groups, the halves of the devices of one host (made for DGX-1, whose halves are fully
// connected). So do we, unless the ranks are several nodes of several GPUs each: then the groups are the nodes.
//
// Left out: TensorFlow moves the main device on by one for each pack of gradients; the default is one pack, so it
// stays, and here it is the group's first rank. With an odd number of devices TensorFlow's halves leave out the last
// one; here the first half is the larger by one, so that the sum is complete.

#include <algorithm>

#include "sim/collectives/allreduce.hpp"

namespace ganymede {
namespace {

/// Consecutive ranks; the last group may be smaller.
struct Groups {
  int ranks;
  int size;  ///< of every group but the last

  int count() const { return (ranks + size - 1) / size; }
};

Groups groups_of(const Topology& topology) {
  const bool nodes = topology.nodes() > 1 && topology.gpus_per_node > 1;
  return {topology.ranks, nodes ? topology.gpus_per_node : (topology.ranks + 1) / 2};
}

enum class Direction { to_main, from_main };

void inside(const Groups& groups, std::int64_t bytes, Direction direction, std::vector<Transfer>& transfers) {
  for (int rank = 0; rank < groups.ranks; ++rank) {
    const int main = rank / groups.size * groups.size;
    if (rank == main) continue;
    const bool gather = direction == Direction::to_main;
    transfers.push_back({gather ? rank : main, gather ? main : rank, 0, bytes, gather});
  }
}

void across(const Groups& groups, std::int64_t bytes, Direction direction, std::vector<Transfer>& transfers) {
  for (int main = groups.size; main < groups.ranks; main += groups.size) {
    const bool gather = direction == Direction::to_main;
    transfers.push_back({gather ? main : 0, gather ? 0 : main, 0, bytes, gather});
  }
}

}  // namespace

Schedule plan_hierarchical_copy(const Topology& topology, std::int64_t bytes) {
  const Groups groups = groups_of(topology);
  const auto both_levels = [groups, bytes](std::int64_t round, std::vector<Transfer>& transfers) {
    switch (round) {
      case 0:
        return inside(groups, bytes, Direction::to_main, transfers);
      case 1:
        return across(groups, bytes, Direction::to_main, transfers);
      case 2:
        return across(groups, bytes, Direction::from_main, transfers);
      default:
        return inside(groups, bytes, Direction::from_main, transfers);
    }
  };
  // Groups of one have nothing to do inside.
  const auto mains_only = [both_levels](std::int64_t round, std::vector<Transfer>& transfers) {
    both_levels(round + 1, transfers);
  };
  if (topology.ranks == 1 || bytes == 0) return Schedule(topology.ranks, bytes, 0, both_levels);
  if (groups.size == 1) return Schedule(topology.ranks, bytes, 2, mains_only);
  return Schedule(topology.ranks, bytes, 4, both_levels);
}

Seconds hierarchical_copy_on_star(const Topology& topology, std::int64_t bytes, const Star& star) {
  // The first group is the largest, and the first main takes part in the exchange across: no main starts that before
  // the first main has its group's sum. So the levels follow one another, and each is a reduction to one device.
  const Groups groups = groups_of(topology);
  return reduce_to_one_on_star(flat(groups.size), bytes, star) +
         reduce_to_one_on_star(flat(groups.count()), bytes, star);
}

}  // namespace ganymede
