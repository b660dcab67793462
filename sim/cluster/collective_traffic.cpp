#include "sim/cluster/collective_traffic.hpp"

#include <map>

namespace ganymede::sim {

std::vector<RankTraffic> rank_traffic(const Scheme& scheme, const Topology& topology,
                                      std::span<const std::int64_t> buckets) {
  std::map<std::pair<int, int>, double> bytes;
  std::vector<Transfer> transfers;
  for (const std::int64_t size : buckets) {
    const Schedule schedule = scheme.plan({topology, size, Collective::all_reduce, ""});
    schedule.check_list();
    for (const Stage& stage : schedule.stages()) {
      transfers.clear();
      stage.expand(0, transfers);
      // Rounds of a stage differ only in their offsets.
      for (const Transfer& transfer : transfers)
        if (transfer.source < topology.ranks && transfer.destination < topology.ranks)
          bytes[{transfer.source, transfer.destination}] +=
              static_cast<double>(stage.rounds) * static_cast<double>(transfer.length) * schedule.cost().wire;
    }
  }
  std::vector<RankTraffic> out;
  for (const auto& [pair, sum] : bytes) out.push_back({pair.first, pair.second, sum});
  return out;
}

std::vector<LinkLoad> link_loads(const FabricGraph& fabric, const CollectiveTraffic& traffic,
                                 std::span<const int> members) {
  std::map<int, double> bytes;
  std::vector<Path> paths;
  for (const RankTraffic& flow : traffic.between) {
    fabric.paths(members[static_cast<std::size_t>(flow.source)], members[static_cast<std::size_t>(flow.destination)],
                 paths);
    for (const Path& path : paths)
      for (const int link : path.links) bytes[link] += path.share * flow.bytes;
  }
  std::vector<LinkLoad> out;
  for (const auto& [link, sum] : bytes) out.push_back({link, sum});
  return out;
}

}  // namespace ganymede::sim
