#include "sim/engine/fabric_graph.hpp"

#include <algorithm>
#include <cassert>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// The lower of two limits; the second one may be absent.
BytesPerSecond narrower(BytesPerSecond limit, const std::optional<BytesPerSecond>& other) {
  return other ? std::min(limit, *other) : limit;
}

std::optional<BytesPerSecond> connection_limit_of(const platforms::Nic& nic) {
  return nic.tcp && nic.transport == platforms::Nic::Transport::tcp ? nic.tcp->per_flow : std::nullopt;
}

/// Returns the next element to fill, reset; beyond `count` the memory of earlier elements is reused.
Path& next_path(std::vector<Path>& paths, std::size_t& count) {
  if (count == paths.size()) paths.emplace_back();
  Path& path = paths[count++];
  path.links.clear();
  path.latency = Seconds{0};
  path.flow_limit = BytesPerSecond{std::numeric_limits<double>::infinity()};
  path.connection_limit = path.flow_limit;
  path.share = 1;
  path.between_nodes = false;
  return path;
}

}  // namespace

int FabricGraph::max_paths() const {
  std::size_t largest = 1;
  for (const Wiring& wiring : wirings_) {
    for (const auto& paths : wiring.paths) largest = std::max(largest, paths.size());
    if (topology_.node_switch && topology_.fabric_switch) largest = std::max(largest, wiring.nic_up.size());
  }
  return static_cast<int>(largest);
}

std::vector<BytesPerSecond> FabricGraph::connection_limits() const {
  std::vector<BytesPerSecond> limits;
  for (const Wiring& wiring : wirings_)
    if (wiring.instance->nic)
      if (const auto limit = connection_limit_of(*wiring.instance->nic)) limits.push_back(*limit);
  return limits;
}

bool FabricGraph::append_links_of(int rank, std::vector<int>& links) const {
  if (fabric_.joins_gpus()) return false;
  const int number = node_of_[static_cast<std::size_t>(rank)];
  const Node& node = nodes_[static_cast<std::size_t>(number)];
  const Wiring& wiring = wirings_[static_cast<std::size_t>(node.wiring)];
  const auto append = [&](const Duplex& pair) { links.insert(links.end(), {pair.up, pair.down}); };
  for (int link = 0; link < static_cast<int>(wiring.links.size()); ++link) links.push_back(node.first_link + link);
  for (int rail = 0; rail < static_cast<int>(wiring.nic_up.size()); ++rail) append(nic_of(node, rail));
  for (std::size_t level = 0; level < uplinks_.size(); ++level)
    append(uplinks_[level][static_cast<std::size_t>(number / fabric_.levels[level].nodes)]);
  if (fabric_.zones && !zones_.empty()) append(zones_[static_cast<std::size_t>(number / fabric_.zones->nodes)]);
  if (core_ >= 0) links.push_back(core_);
  return true;
}

int FabricGraph::place_of(int rank) const {
  const Node& node = nodes_[static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)])];
  return node.wiring * topology_.gpus_per_node + rank - node.first_rank;
}

int FabricGraph::rail_of(const Wiring& wiring, int gpu) const {
  return gpu * static_cast<int>(wiring.nic_up.size()) / wiring.gpus;
}

Duplex FabricGraph::nic_of(const Node& node, int rail) const {
  const Wiring& wiring = wirings_[static_cast<std::size_t>(node.wiring)];
  const auto i = static_cast<std::size_t>(rail);
  return {node.first_nic + wiring.nic_up[i], node.first_nic + wiring.nic_down[i]};
}

void FabricGraph::append_inside(int node, int from, int to, std::vector<Path>& paths) const {
  const Node& where = nodes_[static_cast<std::size_t>(node)];
  const Wiring& wiring = wirings_[static_cast<std::size_t>(where.wiring)];
  std::size_t count = 0;
  for (const LocalPath& local : wiring.paths[wiring.pair(from, to)]) {
    Path& path = next_path(paths, count);
    for (const int link : local.links) path.links.push_back(where.first_link + link);
    path.latency = local.latency;
    path.share = local.share;
  }
  paths.resize(count);
}

void FabricGraph::append_across(int from_node, int to_node, Path& path) const {
  path.latency += fabric_.latency;
  if (core_ >= 0) path.links.push_back(core_);
  for (std::size_t level = 0; level < uplinks_.size(); ++level) {
    const int size = fabric_.levels[level].nodes;
    const int from = from_node / size, to = to_node / size;
    if (from == to) break;
    path.links.push_back(uplinks_[level][static_cast<std::size_t>(from)].up);
    path.links.push_back(uplinks_[level][static_cast<std::size_t>(to)].down);
    path.latency += fabric_.levels[level].latency;
  }
  if (!fabric_.zones) return;
  const int from = from_node / fabric_.zones->nodes, to = to_node / fabric_.zones->nodes;
  if (from == to) return;
  path.links.push_back(zones_[static_cast<std::size_t>(from)].up);
  path.links.push_back(zones_[static_cast<std::size_t>(to)].down);
  path.latency += fabric_.zones->latency;
  path.flow_limit = narrower(path.flow_limit, fabric_.zones->per_flow);
}

// Routes dimension by dimension, and in each dimension in the shorter direction.
void FabricGraph::append_torus(int source, int destination, Path& path) const {
  int stride = 1, hops = 0;
  int at = source;
  for (std::size_t d = 0; d < fabric_.dimensions.size(); ++d) {
    const int length = fabric_.dimensions[d];
    const int here = at / stride % length, there = destination / stride % length;
    const int ahead = (there - here + length) % length;
    const bool forward = 2 * ahead <= length;
    for (int left = forward ? ahead : length - ahead; left > 0; --left, ++hops) {
      path.links.push_back(torus_first_[d] + 2 * at + (forward ? 0 : 1));
      const int place = at / stride % length;
      at += ((place + (forward ? 1 : length - 1)) % length - place) * stride;
    }
    stride *= length;
  }
  path.latency = hops * fabric_.latency;
}

void FabricGraph::append_route(int source, int destination, Path& path) const {
  const auto index = static_cast<std::size_t>(route_of_[pair(source, destination)]);
  const platforms::FabricRoute& route = fabric_.routes[index];
  path.links = route.links;
  path.latency = route.latency;
  path.flow_limit = narrower(path.flow_limit, route.per_flow);
  path.between_nodes = node_of_[static_cast<std::size_t>(source)] != node_of_[static_cast<std::size_t>(destination)];
}

void FabricGraph::switch_paths(int source, int destination, std::vector<Path>& paths) const {
  const bool upward = source < destination;
  const int lower = std::min(source, destination), upper = std::max(source, destination);
  const bool to_fabric = topology_.fabric_switch && upper == topology_.endpoints() - 1;
  const bool from_rank = lower < ranks();
  const int node_index = from_rank ? node_of_[static_cast<std::size_t>(lower)] : lower - ranks();
  const Node& node = nodes_[static_cast<std::size_t>(node_index)];
  const Wiring& wiring = wirings_[static_cast<std::size_t>(node.wiring)];
  std::size_t count = 0;
  if (!to_fabric) {
    assert(from_rank && upper == ranks() + node_index);
    Path& path = next_path(paths, count);
    const auto gpu = static_cast<std::size_t>(lower - node.first_rank);
    path.links.push_back(node.first_link + (upward ? wiring.gpu_up[gpu] : wiring.gpu_down[gpu]));
    path.latency = wiring.to_switch;
    return paths.resize(count);
  }
  // A GPU uses the NIC of its rail; the switch inside a node uses all NICs of the node.
  const int rails = static_cast<int>(wiring.nic_up.size());
  const int first = from_rank ? rail_of(wiring, lower - node.first_rank) : 0;
  for (int rail = first; rail < (from_rank ? first + 1 : rails); ++rail) {
    Path& path = next_path(paths, count);
    const Duplex nic = nic_of(node, rail);
    path.links.push_back(upward ? nic.up : nic.down);
    path.latency = wiring.instance->nic->latency + fabric_.latency / 2;
    path.share = from_rank ? 1 : 1.0 / rails;
    path.between_nodes = true;
  }
  paths.resize(count);
}

void FabricGraph::paths(int source, int destination, std::vector<Path>& paths) const {
  assert(source != destination);
  if (source >= ranks() || destination >= ranks()) return switch_paths(source, destination, paths);
  std::size_t count = 0;
  if (fabric_.kind == platforms::Fabric::Kind::torus) {
    append_torus(source, destination, next_path(paths, count));
    return paths.resize(count);
  }
  if (fabric_.kind == platforms::Fabric::Kind::routed) {
    append_route(source, destination, next_path(paths, count));
    return paths.resize(count);
  }
  const int from_node = node_of_[static_cast<std::size_t>(source)];
  const int to_node = node_of_[static_cast<std::size_t>(destination)];
  const Node& from = nodes_[static_cast<std::size_t>(from_node)];
  const Node& to = nodes_[static_cast<std::size_t>(to_node)];
  const int source_gpu = source - from.first_rank, destination_gpu = destination - to.first_rank;
  if (from_node == to_node) return append_inside(from_node, source_gpu, destination_gpu, paths);

  Path& path = next_path(paths, count);
  path.between_nodes = true;
  const Wiring& sender = wirings_[static_cast<std::size_t>(from.wiring)];
  const Wiring& receiver = wirings_[static_cast<std::size_t>(to.wiring)];
  const platforms::Nic& out = *sender.instance->nic;
  const platforms::Nic& in = *receiver.instance->nic;
  path.latency = out.latency + in.latency + std::max(out.rendezvous, in.rendezvous);
  path.flow_limit = narrower(narrower(path.flow_limit, out.per_flow), in.per_flow);
  path.connection_limit = narrower(narrower(path.connection_limit, connection_limit_of(out)), connection_limit_of(in));
  if (!sender.host_up.empty()) {
    path.links.push_back(from.first_link + sender.host_up[static_cast<std::size_t>(source_gpu)]);
    path.latency += sender.instance->host_link->latency;
  }
  // Nodes that share a physical NIC also reach each other over it, out and back in, through the host's own switch.
  path.links.push_back(nic_of(from, rail_of(sender, source_gpu)).up);
  append_across(from_node, to_node, path);
  path.links.push_back(nic_of(to, rail_of(receiver, destination_gpu)).down);
  if (!receiver.host_down.empty()) {
    path.links.push_back(to.first_link + receiver.host_down[static_cast<std::size_t>(destination_gpu)]);
    path.latency += receiver.instance->host_link->latency;
  }
  paths.resize(count);
}

}  // namespace ganymede::sim
