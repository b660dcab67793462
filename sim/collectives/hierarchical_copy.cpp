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

#include "sim/collectives/parts.hpp"
#include "sim/collectives/schemes.hpp"

namespace ganymede {
namespace {

/// Consecutive ranks.
struct Groups {
  int ranks = 0;
  std::vector<int> heads;  ///< the mains: each group's first rank

  int size_of(std::size_t group) const { return (group + 1 < heads.size() ? heads[group + 1] : ranks) - heads[group]; }
};

Groups groups_of(const Topology& topology) {
  Groups groups{topology.ranks, {}};
  if (topology.nodes() > 1 && topology.gpus_per_node > 1) {
    for (int node = 0; node < topology.nodes(); ++node) groups.heads.push_back(topology.first_of(node));
  } else {
    groups.heads = {0, (topology.ranks + 1) / 2};
  }
  return groups;
}

enum class Direction { to_main, from_main };

void inside(const Groups& groups, std::int64_t bytes, Direction direction, std::vector<Transfer>& transfers) {
  const bool gather = direction == Direction::to_main;
  for (std::size_t group = 0; group < groups.heads.size(); ++group) {
    const int main = groups.heads[group];
    for (int rank = main + 1; rank < main + groups.size_of(group); ++rank)
      transfers.push_back({gather ? rank : main, gather ? main : rank, 0, bytes, gather});
  }
}

void across(const Groups& groups, std::int64_t bytes, Direction direction, std::vector<Transfer>& transfers) {
  const bool gather = direction == Direction::to_main;
  for (std::size_t group = 1; group < groups.heads.size(); ++group) {
    const int main = groups.heads[group];
    transfers.push_back({gather ? main : 0, gather ? 0 : main, 0, bytes, gather});
  }
}

}  // namespace

WhyNot hierarchical_copy_why_not(const PlanRequest& request) {
  if (auto why = no_variant(request)) return why;
  return only(request, {Collective::all_reduce});
}

Schedule plan_hierarchical_copy(const PlanRequest& request) {
  if (is_trivial(request)) return nothing(request);
  const Groups groups = groups_of(request.topology);
  const std::int64_t bytes = request.bytes;
  using Level = void (*)(const Groups&, std::int64_t, Direction, std::vector<Transfer>&);
  std::vector<Stage> stages;
  const auto add = [&](Level level, Direction direction) {
    stages.push_back({1, [=](std::int64_t /*round*/, std::vector<Transfer>& transfers) {
                        level(groups, bytes, direction, transfers);
                      }});
  };
  // Groups of one have nothing to do inside.
  const bool has_members = static_cast<int>(groups.heads.size()) < groups.ranks;
  if (has_members) add(inside, Direction::to_main);
  add(across, Direction::to_main);
  add(across, Direction::from_main);
  if (has_members) add(inside, Direction::from_main);
  return Schedule(groups.ranks, request.topology.endpoints(), bytes, std::move(stages));
}

// The first group is no smaller than the others where nodes are alike, and the first main takes part in the exchange
// across: no main starts that before the first main has its group's sum. So the levels follow one another, and each is
// a reduction to one device.
Seconds hierarchical_copy_on_star(const PlanRequest& request, const Star& star) {
  if (is_trivial(request)) return Seconds{0};
  const Groups groups = groups_of(request.topology);
  const auto level = [&](int members) {
    PlanRequest part = request;
    part.topology = flat(members);
    return reduce_to_one_on_star(part, star);
  };
  return level(groups.size_of(0)) + level(static_cast<int>(groups.heads.size()));
}

}  // namespace ganymede
