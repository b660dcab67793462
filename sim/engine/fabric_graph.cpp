#include "sim/engine/fabric_graph.hpp"

#include <fmt/format.h>

#include <cassert>

namespace ganymede {

FabricGraph::Duplex FabricGraph::add_duplex(const std::string& name, BytesPerSecond bandwidth) {
  links_.push_back({name + ".up", bandwidth});
  links_.push_back({name + ".down", bandwidth});
  return {static_cast<int>(links_.size()) - 2, static_cast<int>(links_.size()) - 1};
}

FabricGraph::FabricGraph(const Platform& platform, const Instance& instance, int nodes, int gpus_per_node)
    : topology_{nodes * gpus_per_node, gpus_per_node} {
  if (gpus_per_node > 1) {
    assert(instance.gpu_links || instance.host_link);  // the platform's reader sees to it
    const Link& link = instance.gpu_links ? static_cast<const Link&>(*instance.gpu_links) : *instance.host_link;
    inside_latency_ = instance.gpu_links ? link.latency : 2 * link.latency;
    for (int rank = 0; rank < ranks(); ++rank)
      gpu_.push_back(
          add_duplex(fmt::format("{}.{}", instance.gpu_links ? "gpu_link" : "host_link", rank), link.bandwidth));
  }
  if (nodes > 1) {
    if (!instance.nic)
      throw ConfigError(fmt::format("{}: /instances/{}: {} nodes need a \"nic\", which is missing", platform.file,
                                    instance.name, nodes));
    const Nic& nic = *instance.nic;
    for (int node = 0; node < nodes; ++node) nic_.push_back(add_duplex(fmt::format("nic.{}", node), nic.bandwidth));
    between_latency_ = 2 * nic.latency + platform.fabric.latency + nic.rendezvous;
    if (!nic.gpu_direct) {
      assert(instance.host_link);  // the platform's reader sees to it
      between_latency_ += 2 * instance.host_link->latency;
      const bool same_as_inside = gpus_per_node > 1 && !instance.gpu_links;
      for (int rank = 0; rank < ranks(); ++rank)
        host_.push_back(same_as_inside ? gpu_[static_cast<std::size_t>(rank)]
                                       : add_duplex(fmt::format("host_link.{}", rank), instance.host_link->bandwidth));
    }
    if (platform.fabric.oversubscription > 1) {
      core_ = static_cast<int>(links_.size());
      links_.push_back({"switch", nodes * nic.bandwidth / platform.fabric.oversubscription});
    }
  }
}

Route FabricGraph::route(int source, int destination) const {
  assert(source != destination);
  const auto from = static_cast<std::size_t>(source);
  const auto to = static_cast<std::size_t>(destination);
  if (topology_.node_of(source) == topology_.node_of(destination))
    return {{gpu_[from].up, gpu_[to].down}, inside_latency_};
  Route route{{}, between_latency_};
  if (!host_.empty()) route.links.push_back(host_[from].up);
  route.links.push_back(nic_[static_cast<std::size_t>(topology_.node_of(source))].up);
  if (core_ >= 0) route.links.push_back(core_);
  route.links.push_back(nic_[static_cast<std::size_t>(topology_.node_of(destination))].down);
  if (!host_.empty()) route.links.push_back(host_[to].down);
  return route;
}

}  // namespace ganymede
