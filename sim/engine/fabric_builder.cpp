// Lays out a fabric from a platform: the inside of each kind of node once, then every node, then the links between
// nodes.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/collectives/nccl_tuner.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::sim {

class FabricGraph::Builder {
 public:
  Builder(FabricGraph& graph, const platforms::Platform& platform, const std::vector<NodeGroup>& groups)
      : graph_(graph), platform_(platform), groups_(groups) {}

  void build() {
    graph_.fabric_ = platform_.fabric;
    if (platform_.measured && groups_.size() == 1 && groups_[0].instance->name == platform_.measured->instance)
      graph_.measured_ = platform_.measured;
    for (const NodeGroup& group : groups_) total_nodes_ += group.nodes;
    for (const NodeGroup& group : groups_) add_group(group);
    lay_out_fabric();
    describe_topology();
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      const platforms::Gpu& gpu = platform_.gpu_of(*wiring_of_rank(rank).instance);
      graph_.endpoints_.push_back({gpu.memory_bandwidth, gpu.launch});
    }
    graph_.endpoints_.resize(static_cast<std::size_t>(graph_.topology_.endpoints()));
  }

 private:
  bool joins_gpus() const { return platform_.fabric.joins_gpus(); }

  const Wiring& wiring_of_rank(int rank) const {
    const auto node = static_cast<std::size_t>(graph_.node_of_[static_cast<std::size_t>(rank)]);
    return graph_.wirings_[static_cast<std::size_t>(graph_.nodes_[node].wiring)];
  }

  Duplex add_duplex(const std::string& name, BytesPerSecond bandwidth) {
    graph_.links_.push_back({name + ".up", bandwidth});
    graph_.links_.push_back({name + ".down", bandwidth});
    return {static_cast<int>(graph_.links_.size()) - 2, static_cast<int>(graph_.links_.size()) - 1};
  }

  // ---- the nodes ----

  /// The number of rails of a node. If a whole number of NICs above one belongs to each GPU, as on p5 with its 32 EFA
  /// adapters, they are one rail of all their bandwidth: the network's plugin stripes each message over them
  /// (aws/aws-ofi-nccl src/tuner/nccl_ofi_model.cpp counts four rails a GPU on p5, two on p5en).
  static int rails_of(const platforms::Instance& instance) {
    const int nics = instance.nic->count;
    return nics > instance.gpus && nics % instance.gpus == 0 ? instance.gpus : nics;
  }

  void add_group(const NodeGroup& group) {
    const platforms::Instance& instance = *group.instance;
    const bool over_nics = total_nodes_ > 1 && !joins_gpus();
    if (over_nics && !instance.nic)
      throw ConfigError(fmt::format("{}: /instances/{}: {} nodes need a \"nic\", which is missing", platform_.file,
                                    instance.name, total_nodes_));
    Wiring wiring = wire_node(platform_, group, over_nics);
    if (over_nics)
      for (int rail = 0; rail < rails_of(instance); ++rail) {
        wiring.nic_up.push_back(2 * rail);
        wiring.nic_down.push_back(2 * rail + 1);
      }
    if (groups_.size() == 1) graph_.topology_.rings = wiring.rings;
    graph_.wirings_.push_back(std::move(wiring));
    for (int node = 0; node < group.nodes; ++node) add_node(group, node);
  }

  void add_node(const NodeGroup& group, int index) {
    const int number = static_cast<int>(graph_.nodes_.size());
    Node node;
    node.wiring = static_cast<int>(graph_.wirings_.size()) - 1;
    node.first_rank = static_cast<int>(graph_.node_of_.size());
    node.first_link = static_cast<int>(graph_.links_.size());
    for (const DirectedLink& link : graph_.wirings_.back().links)
      graph_.links_.push_back({fmt::format("{}@{}", link.name, number), link.bandwidth});
    if (total_nodes_ > 1 && !joins_gpus()) {
      const platforms::Nic& nic = *group.instance->nic;
      if (index % nic.shared_by != 0) {
        node.first_nic = graph_.nodes_.back().first_nic;
      } else {
        node.first_nic = static_cast<int>(graph_.links_.size());
        const int rails = rails_of(*group.instance);
        for (int rail = 0; rail < rails; ++rail)
          add_duplex(rails == 1 ? fmt::format("nic.{}", number) : fmt::format("nic.{}.{}", number, rail),
                     nic.count / rails * nic.bandwidth);
      }
    }
    graph_.node_of_.insert(graph_.node_of_.end(), static_cast<std::size_t>(group.gpus_per_node), number);
    graph_.nodes_.push_back(node);
  }

  // ---- between the nodes ----

  /// The bandwidth of the NICs of the nodes [first, last), in one direction.
  BytesPerSecond nic_bandwidth(std::size_t first, std::size_t last) const {
    BytesPerSecond sum{0};
    for (std::size_t node = first; node < std::min(last, graph_.nodes_.size()); ++node) {
      const platforms::Nic& nic = *graph_.wirings_[static_cast<std::size_t>(graph_.nodes_[node].wiring)].instance->nic;
      sum += nic.count * nic.bandwidth / nic.shared_by;
    }
    return sum;
  }

  void lay_out_fabric() {
    const platforms::Fabric& fabric = platform_.fabric;
    const int ranks = static_cast<int>(graph_.node_of_.size());
    if (fabric.kind == platforms::Fabric::Kind::torus) return lay_out_torus(ranks);
    if (fabric.kind == platforms::Fabric::Kind::routed) return lay_out_routes(ranks);
    if (total_nodes_ == 1) return;
    const auto nodes = static_cast<std::size_t>(total_nodes_);
    if (const bool limited = fabric.bandwidth > BytesPerSecond{0}; limited || fabric.oversubscription > 1) {
      const BytesPerSecond nics = nic_bandwidth(0, nodes) / fabric.oversubscription;
      graph_.core_ = static_cast<int>(graph_.links_.size());
      graph_.links_.push_back({"switch", limited ? std::min(nics, fabric.bandwidth) : nics});
    }
    for (std::size_t level = 0; level < fabric.levels.size(); ++level) {
      auto& groups = graph_.uplinks_.emplace_back();
      const auto size = static_cast<std::size_t>(fabric.levels[level].nodes);
      for (std::size_t first = 0; first < nodes; first += size)
        groups.push_back(add_duplex(fmt::format("level_{}.{}", level + 1, groups.size()),
                                    nic_bandwidth(first, first + size) / fabric.levels[level].oversubscription));
    }
    if (fabric.zones)
      for (int first = 0; first < total_nodes_; first += fabric.zones->nodes)
        graph_.zones_.push_back(add_duplex(fmt::format("zone.{}", graph_.zones_.size()), fabric.zones->bandwidth));
  }

  void lay_out_torus(int ranks) {
    const platforms::Fabric& fabric = platform_.fabric;
    std::int64_t product = 1;
    for (const int length : fabric.dimensions) product *= length;
    if (product != ranks)
      throw ConfigError(fmt::format("{}: /fabric/dimensions: found a torus of {} GPUs, expected the {} GPUs asked for",
                                    platform_.file, product, ranks));
    for (std::size_t d = 0; d < fabric.dimensions.size(); ++d) {
      graph_.torus_first_.push_back(static_cast<int>(graph_.links_.size()));
      for (int rank = 0; rank < ranks; ++rank) {
        graph_.links_.push_back({fmt::format("torus_{}.{}.forward", d, rank), fabric.bandwidth});
        graph_.links_.push_back({fmt::format("torus_{}.{}.backward", d, rank), fabric.bandwidth});
      }
    }
  }

  void lay_out_routes(int ranks) {
    const platforms::Fabric& fabric = platform_.fabric;
    const auto count = static_cast<std::size_t>(ranks);
    for (const platforms::RoutedLink& link : fabric.links) graph_.links_.push_back({link.name, link.bandwidth});
    graph_.route_of_.assign(count * count, -1);
    for (std::size_t i = 0; i < fabric.routes.size(); ++i) {
      const platforms::FabricRoute& route = fabric.routes[i];
      if (route.from < ranks && route.to < ranks) graph_.route_of_[graph_.pair(route.from, route.to)] = int(i);
    }
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        if (from != to && graph_.route_of_[graph_.pair(from, to)] < 0)
          throw ConfigError(fmt::format("{}: /fabric/routes: no route from GPU {} to GPU {}, and {} GPUs are asked for",
                                        platform_.file, from, to, ranks));
  }

  // ---- the topology, which plans may use ----

  void describe_topology() {
    Topology& topology = graph_.topology_;
    topology.ranks = static_cast<int>(graph_.node_of_.size());
    bool alike = true;
    for (const NodeGroup& group : groups_) {
      topology.gpus_per_node = std::max(topology.gpus_per_node, group.gpus_per_node);
      alike = alike && group.gpus_per_node == groups_[0].gpus_per_node;
    }
    if (!alike)
      for (const NodeGroup& group : groups_)
        topology.node_sizes.insert(topology.node_sizes.end(), static_cast<std::size_t>(group.nodes),
                                   group.gpus_per_node);
    const auto& nic = groups_[0].instance->nic;
    if (total_nodes_ > 1 && nic && !joins_gpus()) topology.rails = std::min(nic->count, topology.gpus_per_node);
    topology.torus = platform_.fabric.dimensions;
    topology.node_switch = !joins_gpus() && std::all_of(groups_.begin(), groups_.end(), [](const NodeGroup& group) {
      return group.instance->gpu_links && group.instance->gpu_links->reduces && group.gpus_per_node > 1;
    });
    topology.fabric_switch = platform_.fabric.reduces && total_nodes_ > 1;
    describe_nccl();
  }

  /// The row of NCCL's tables for a family of GPUs.
  static NcclMachine::Generation generation_of(const std::string& family) {
    const auto is = [&](std::initializer_list<const char*> names) {
      return std::any_of(names.begin(), names.end(), [&](const char* name) { return family.starts_with(name); });
    };
    if (is({"B100", "B200", "GB200", "B300"})) return NcclMachine::Generation::blackwell;
    if (is({"H100", "H200", "H800", "H20", "GH200"})) return NcclMachine::Generation::hopper;
    if (is({"A100", "A10", "A30", "A40", "A800", "L4", "L40", "RTX A", "RTX 3", "RTX 4"}))
      return NcclMachine::Generation::ampere;
    if (is({"V100", "T4", "RTX 2080", "2080", "Titan V"})) return NcclMachine::Generation::volta;
    return NcclMachine::Generation::older;
  }

  void describe_nccl() {
    const NodeGroup& group = groups_[0];
    const platforms::Instance& instance = *group.instance;
    NcclMachine& machine = graph_.topology_.nccl;
    machine.generation = generation_of(platform_.gpu_of(instance).family);
    if (const std::string& stated = platform_.fabric.nccl; !stated.empty()) {
      const auto options = parse_nccl_options(stated);
      if (!options || options->version.major != 2 || options->algorithm || options->protocol || options->any_protocol)
        throw ConfigError(fmt::format(
            "{}: /fabric/nccl: found \"{}\", expected a version of NCCL such as \"2.18\", or a month from 2019-01 on",
            platform_.file, stated));
      if (const std::string why = why_no_version(*options); !why.empty())
        throw ConfigError(fmt::format("{}: /fabric/nccl: {}", platform_.file, why));
      machine.minor = options->version.minor;
    }
    if (group.gpus_per_node > 1) {
      machine.inside = NcclMachine::Inside::pcie;
      if (instance.gpu_links) {
        const platforms::GpuLinks& links = *instance.gpu_links;
        machine.inside_bandwidth = links.bandwidth;
        machine.inside_latency = links.latency;
        machine.peer_to_peer = !links.staging;
        machine.inside_measured = links.label == "measured";
        if (links.kind == platforms::GpuLinks::Kind::mesh) machine.inside = NcclMachine::Inside::nvlink_mesh;
        if (links.kind == platforms::GpuLinks::Kind::nvswitch) machine.inside = NcclMachine::Inside::nvlink_switch;
        if (links.kind == platforms::GpuLinks::Kind::nvlink) machine.inside = NcclMachine::Inside::nvlink_switch;
        if (links.kind == platforms::GpuLinks::Kind::mesh)
          machine.inside_bandwidth =
              2 * std::max(1.0, static_cast<double>(graph_.topology_.rings.size())) * links.bandwidth;
      } else {
        machine.inside_bandwidth = instance.host_link->bandwidth;
        machine.inside_latency = 2 * instance.host_link->latency;
        machine.peer_to_peer = false;
        machine.inside_measured = instance.host_link->label == "measured";
      }
    }
    if (total_nodes_ > 1 && instance.nic) {
      // The NICs of the GPUs that take part: the others are too far from them.
      machine.nics = graph_.topology_.rails * (instance.nic->count / rails_of(instance));
      machine.between_bandwidth = machine.nics * instance.nic->bandwidth;
      machine.network_latency = 2 * instance.nic->latency + platform_.fabric.latency;
      if (!instance.nic->gpu_direct && instance.host_link) machine.network_latency += 2 * instance.host_link->latency;
      machine.rendezvous = instance.nic->rendezvous;
      machine.rendezvous_in_tuner = instance.nic->rendezvous_in_tuner;
      machine.gpu_direct = instance.nic->gpu_direct;
      machine.sockets = instance.nic->transport == platforms::Nic::Transport::tcp;
      // NCCL opens one socket where nothing says otherwise. A measured link contains what hosts limit.
      if (instance.nic->tcp || instance.nic->label != "measured")
        machine.socket_connections = instance.nic->tcp ? instance.nic->tcp->sockets : 1;
      machine.efa = instance.nic->transport == platforms::Nic::Transport::efa;
      if (!machine.gpu_direct && instance.host_link) machine.staging_bandwidth = instance.host_link->bandwidth;
    }
  }

  FabricGraph& graph_;
  const platforms::Platform& platform_;
  const std::vector<NodeGroup>& groups_;
  int total_nodes_ = 0;
};

FabricGraph::FabricGraph(const platforms::Platform& platform, const std::vector<NodeGroup>& groups) {
  assert(!groups.empty());
  Builder(*this, platform, groups).build();
}

}  // namespace ganymede::sim
