// Hierarchical copy, after aggregate_gradients_using_hierarchical_copy of TensorFlow 2 (tensorflow/python/distribute/
// cross_device_utils.py), which HierarchicalCopyAllReduce calls. The members of each group send their bytes to the
// group's main device, which adds them up. The mains send their sums to the first main, which adds those up and sends
// the total back to the mains. Each main sends it to its group.
//
// TensorFlow knows two groups, the halves of the devices of one host (made for DGX-1, whose halves are fully
// connected). This scheme forms the same groups, unless the ranks are on several nodes of several GPUs each: then the
// groups are the nodes.
//
// Two differences: TensorFlow moves the main device on by one for each pack of gradients. The default is one pack, so
// it stays, and here it is always the group's first rank. With an odd number of devices TensorFlow's halves leave out
// the last one; here the first half is the larger by one, so that the sum is complete.

#include "common/units.hpp"
#include "sim/collectives/schedule_builders.hpp"

namespace ganymede::sim {
namespace {

/// Groups of consecutive ranks.
struct Groups {
  int ranks = 0;
  std::vector<int> mains;  ///< the first rank of each group

  int size_of(std::size_t group) const { return (group + 1 < mains.size() ? mains[group + 1] : ranks) - mains[group]; }
};

Groups copy_groups(const Topology& topology) {
  Groups groups{topology.ranks, {}};
  if (topology.nodes() > 1 && topology.gpus_per_node > 1) {
    for (int node = 0; node < topology.nodes(); ++node) groups.mains.push_back(topology.first_of(node));
  } else {
    groups.mains = {0, (topology.ranks + 1) / 2};
  }
  return groups;
}

enum class Direction { to_main, from_main };

void copy_within_groups(const Groups& groups, std::int64_t bytes, Direction direction,
                        std::vector<Transfer>& transfers) {
  const bool gather = direction == Direction::to_main;
  for (std::size_t group = 0; group < groups.mains.size(); ++group) {
    const int main = groups.mains[group];
    for (int rank = main + 1; rank < main + groups.size_of(group); ++rank)
      transfers.push_back({gather ? rank : main, gather ? main : rank, 0, bytes, gather});
  }
}

void copy_between_mains(const Groups& groups, std::int64_t bytes, Direction direction,
                        std::vector<Transfer>& transfers) {
  const bool gather = direction == Direction::to_main;
  for (std::size_t group = 1; group < groups.mains.size(); ++group) {
    const int main = groups.mains[group];
    transfers.push_back({gather ? main : 0, gather ? 0 : main, 0, bytes, gather});
  }
}

Schedule plan_hierarchical_copy(const PlanRequest& request) {
  if (is_trivial(request)) return empty_schedule(request);
  const Groups groups = copy_groups(request.topology);
  const std::int64_t bytes = request.bytes;
  using Level = void (*)(const Groups&, std::int64_t, Direction, std::vector<Transfer>&);
  std::vector<Stage> stages;
  const auto add = [&](Level level, Direction direction) {
    stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& transfers) {
                        level(groups, bytes, direction, transfers);
                      }});
  };
  // Groups of one rank have nothing to copy inside.
  const bool has_members = static_cast<int>(groups.mains.size()) < groups.ranks;
  if (has_members) add(copy_within_groups, Direction::to_main);
  add(copy_between_mains, Direction::to_main);
  add(copy_between_mains, Direction::from_main);
  if (has_members) add(copy_within_groups, Direction::from_main);
  return Schedule(groups.ranks, request.topology.endpoints(), bytes, std::move(stages));
}

// If nodes are alike, no group is larger than the first one. The first main takes part in the exchange between mains,
// so that exchange starts only when the first main has its group's sum. So the levels follow one another, and each is a
// reduction to one device.
Seconds hierarchical_copy_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const Groups groups = copy_groups(request.topology);
  const auto level = [&](int members) {
    return members == 1 ? Seconds{0} : reduce_to_one_time(members, request.bytes, star);
  };
  return level(groups.size_of(0)) + level(static_cast<int>(groups.mains.size()));
}

}  // namespace

extern const AllReduceScheme hierarchical_copy_scheme{
    .name = "hierarchical-copy",
    .summary = "reduce inside groups, then across their mains, and copy back, as in TensorFlow",
    .plan = plan_hierarchical_copy,
    .on_star = hierarchical_copy_on_star,
};

}  // namespace ganymede::sim
