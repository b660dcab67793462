// Reads the links between GPUs and between nodes.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/platform_readers.hpp"

namespace ganymede::platforms {
namespace {

// The upper limits catch typing errors; they are far above anything that is sold.
constexpr int kMaxLinks = 1024;
constexpr int kMaxNics = 1024;
constexpr int kMaxSockets = 64;  // of NCCL (src/transport/net_socket.cc, MAX_SOCKETS)
constexpr double kMaxOversubscription = 1e6;
constexpr std::size_t kMaxDimensions = 3;

std::string read_label(JsonObject& in) {
  const auto label = in.optional("label");
  return label ? label->as_choice({"measured", "datasheet", "assumed"}) : "datasheet";
}

void read_link(JsonObject& in, Link& link) {
  link.bandwidth = in.required("bandwidth").as_positive<BytesPerSecond>();
  link.latency = in.required("latency").as_quantity<Seconds>();
  link.label = read_label(in);
  link.origin = read_origin(in);
}

int integer_or(JsonObject& in, std::string_view key, int default_value, int high) {
  const auto node = in.optional(key);
  return node ? static_cast<int>(node->as_integer(1, high)) : default_value;
}

/// Reads groups of GPUs, [[0, 1], [2, 3]]; each GPU may be in one group at most.
std::vector<std::vector<int>> read_groups(const JsonNode& node, int gpus) {
  std::vector<std::vector<int>> groups;
  std::set<int> seen;
  for (const JsonNode& row : node.as_array()) {
    auto& group = groups.emplace_back();
    for (const JsonNode& gpu : row.as_array()) {
      group.push_back(static_cast<int>(gpu.as_integer(0, gpus - 1)));
      if (!seen.insert(group.back()).second) gpu.fail(fmt::format("GPU {} is in two groups", group.back()));
    }
  }
  return groups;
}

/// Reads the edges of a mesh, [[0, 1, 2], …]: two GPUs and the number of links between them.
std::vector<MeshEdge> read_mesh(const JsonNode& node, int gpus) {
  std::vector<MeshEdge> edges;
  std::set<std::pair<int, int>> seen;
  for (const JsonNode& row : node.as_array()) {
    const auto numbers = row.as_array();
    if (numbers.size() != 3) row.expected("two GPUs and the number of links between them, as [0, 1, 2]");
    MeshEdge edge{static_cast<int>(numbers[0].as_integer(0, gpus - 1)),
                  static_cast<int>(numbers[1].as_integer(0, gpus - 1)),
                  static_cast<int>(numbers[2].as_integer(1, kMaxLinks))};
    if (edge.a == edge.b) row.fail(fmt::format("joins GPU {} to itself", edge.a));
    if (!seen.insert(std::minmax(edge.a, edge.b)).second)
      row.fail(
          fmt::format("joins GPUs {} and {} a second time; say it once, with the number of links", edge.a, edge.b));
    edges.push_back(edge);
  }
  return edges;
}

void read_pcie(JsonObject& in, GpuLinks& links, int gpus) {
  if (const auto groups = in.optional("switches")) links.switches = read_groups(*groups, gpus);
  links.switch_bandwidth = optional_positive<BytesPerSecond>(in, "switch_bandwidth");
  if (const auto groups = in.optional("numa")) links.numa = read_groups(*groups, gpus);
  links.numa_bandwidth = optional_positive<BytesPerSecond>(in, "numa_bandwidth");
  links.numa_latency = seconds_or(in, "numa_latency", Seconds{0});
  if (const auto staging = in.optional("staging")) links.staging = read_host_link(*staging);
}

void read_levels(const JsonNode& node, Fabric& fabric) {
  for (const JsonNode& row : node.as_array()) {
    JsonObject in(row);
    FabricLevel level;
    const JsonNode nodes = in.required("nodes");
    level.nodes = static_cast<int>(nodes.as_integer(1, kMaxNodes));
    if (const auto ratio = in.optional("oversubscription"))
      level.oversubscription = ratio->as_number(1, kMaxOversubscription);
    level.latency = seconds_or(in, "latency", Seconds{0});
    in.finish();
    const int below = fabric.levels.empty() ? 1 : fabric.levels.back().nodes;
    if (level.nodes < below || level.nodes % below != 0)
      nodes.expected(fmt::format("a multiple of {}, the nodes in a group of the level below", below));
    fabric.levels.push_back(level);
  }
  if (fabric.levels.empty()) node.expected("at least one level");
}

void read_torus(JsonObject& in, Fabric& fabric) {
  const JsonNode dimensions = in.required("dimensions");
  for (const JsonNode& length : dimensions.as_array())
    fabric.dimensions.push_back(static_cast<int>(length.as_integer(1, kMaxNodes)));
  if (fabric.dimensions.empty() || fabric.dimensions.size() > kMaxDimensions)
    dimensions.expected("one to three lengths, as [4, 4]");
  fabric.bandwidth = in.required("bandwidth").as_positive<BytesPerSecond>();
}

void read_routes(JsonObject& in, Fabric& fabric) {
  std::map<std::string, int, std::less<>> numbers;
  for (const auto& [name, bandwidth] : in.required("links").as_map()) {
    numbers.emplace(name, static_cast<int>(fabric.links.size()));
    fabric.links.push_back({name, bandwidth.as_positive<BytesPerSecond>()});
  }
  std::set<std::pair<int, int>> seen;
  for (const JsonNode& row : in.required("routes").as_array()) {
    JsonObject members(row);
    FabricRoute route;
    route.from = static_cast<int>(members.required("from").as_integer(0, kMaxNodes - 1));
    route.to = static_cast<int>(members.required("to").as_integer(0, kMaxNodes - 1));
    if (route.from == route.to) row.fail(fmt::format("leads from GPU {} to itself", route.from));
    if (!seen.emplace(route.from, route.to).second)
      row.fail(fmt::format("is a second route from GPU {} to GPU {}", route.from, route.to));
    for (const JsonNode& link : members.required("links").as_array()) {
      const auto found = numbers.find(link.as_string());
      if (found == numbers.end()) link.fail(fmt::format("found \"{}\", expected a name in links", link.as_string()));
      if (std::find(route.links.begin(), route.links.end(), found->second) != route.links.end())
        link.fail(fmt::format("crosses \"{}\" a second time", found->first));
      route.links.push_back(found->second);
    }
    if (route.links.empty()) row.fail("crosses no link, expected at least one");
    route.latency = members.required("latency").as_quantity<Seconds>();
    route.per_flow = optional_positive<BytesPerSecond>(members, "per_flow");
    members.finish();
    fabric.routes.push_back(std::move(route));
  }
}

Zones read_zones(const JsonNode& node) {
  JsonObject in(node);
  Zones zones;
  zones.nodes = static_cast<int>(in.required("nodes").as_integer(1, kMaxNodes));
  zones.bandwidth = in.required("bandwidth").as_positive<BytesPerSecond>();
  zones.latency = in.required("latency").as_quantity<Seconds>();
  zones.per_flow = optional_positive<BytesPerSecond>(in, "per_flow");
  in.finish();
  return zones;
}

Nic::Tcp read_tcp(const JsonNode& node) {
  JsonObject in(node);
  Nic::Tcp tcp;
  tcp.per_flow = optional_positive<BytesPerSecond>(in, "per_flow");
  tcp.sockets = integer_or(in, "sockets", 1, kMaxSockets);
  in.finish();
  return tcp;
}

}  // namespace

Link read_host_link(const JsonNode& node) {
  JsonObject in(node);
  Link link;
  read_link(in, link);
  in.finish();
  return link;
}

GpuLinks read_gpu_links(const JsonNode& node, int gpus) {
  JsonObject in(node);
  GpuLinks links;
  const std::vector<std::string> kinds = {"nvlink", "nvswitch", "mesh", "pcie"};
  const std::string kind = in.required("kind").as_choice(kinds);
  links.kind = static_cast<GpuLinks::Kind>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  read_link(in, links);
  if (links.kind == GpuLinks::Kind::pcie) {
    read_pcie(in, links, gpus);
  } else if (const auto both = in.optional("with_host_link")) {
    links.with_host_link = both->as_bool();
  }
  if (links.kind == GpuLinks::Kind::mesh) links.mesh = read_mesh(in.required("links"), gpus);
  if (links.kind == GpuLinks::Kind::nvswitch)
    if (const auto reduces = in.optional("reduces")) links.reduces = reduces->as_bool();
  in.finish();
  return links;
}

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names = {"rdma", "efa", "tcp"};
  return names;
}

Nic read_nic(const JsonNode& node) {
  JsonObject in(node);
  Nic nic;
  read_link(in, nic);
  nic.count = integer_or(in, "count", 1, kMaxNics);
  if (const auto transport = in.optional("transport")) {
    const std::vector<std::string>& names = transport_names();
    const auto found = std::find(names.begin(), names.end(), transport->as_choice(names));
    nic.transport = static_cast<Nic::Transport>(found - names.begin());
  }
  nic.rendezvous = seconds_or(in, "rendezvous", Seconds{0});
  if (auto counted = in.optional("rendezvous_in_tuner")) nic.rendezvous_in_tuner = counted->as_bool();
  if (const auto direct = in.optional("gpu_direct")) nic.gpu_direct = direct->as_bool();
  nic.per_flow = optional_positive<BytesPerSecond>(in, "per_flow");
  if (const auto burst = in.optional("burst")) {
    nic.burst = burst->as_quantity<BytesPerSecond>();
    if (!(*nic.burst > nic.bandwidth))
      burst->fail(fmt::format("found {}, expected more than the bandwidth of {}, which is sustained",
                              to_string(*nic.burst), to_string(nic.bandwidth)));
  }
  if (const auto tcp = in.optional("tcp")) nic.tcp = read_tcp(*tcp);
  nic.shared_by = integer_or(in, "shared_by", 1, kMaxNodes);
  in.finish();
  return nic;
}

Fabric read_fabric(const JsonNode& node) {
  JsonObject in(node);
  Fabric fabric;
  const std::vector<std::string> kinds = {"switch", "fat-tree", "torus", "routes"};
  const std::string kind = in.required("kind").as_choice(kinds);
  fabric.kind = static_cast<Fabric::Kind>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  if (fabric.kind == Fabric::Kind::routed)
    read_routes(in, fabric);
  else
    fabric.latency = seconds_or(in, "latency", Seconds{0});
  if (fabric.kind == Fabric::Kind::switched) {
    if (const auto ratio = in.optional("oversubscription"))
      fabric.oversubscription = ratio->as_number(1, kMaxOversubscription);
    if (const auto shared = in.optional("bandwidth")) fabric.bandwidth = shared->as_positive<BytesPerSecond>();
    if (const auto reduces = in.optional("reduces")) fabric.reduces = reduces->as_bool();
  }
  if (fabric.kind == Fabric::Kind::fat_tree) read_levels(in.required("levels"), fabric);
  if (fabric.kind == Fabric::Kind::torus)
    read_torus(in, fabric);
  else if (fabric.kind != Fabric::Kind::routed)
    if (const auto zones = in.optional("zones")) fabric.zones = read_zones(*zones);
  if (const auto nccl = in.optional("nccl")) {
    if (nccl->is_number()) nccl->expected("a version in quotes, such as \"2.18\": as a number 2.20 is 2.2");
    fabric.nccl = nccl->as_string();
  }
  fabric.label = read_label(in);
  fabric.origin = read_origin(in);
  in.finish();
  return fabric;
}

}  // namespace ganymede::platforms
