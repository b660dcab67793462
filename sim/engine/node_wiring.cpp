#include "sim/engine/node_wiring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <queue>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// A depth-first search for the largest set of rings. The first ring found may block a second one, so every choice of
/// rings is tried, within a budget of steps.
class RingSearch {
 public:
  RingSearch(const std::vector<platforms::MeshEdge>& mesh, int gpus) : gpus_(static_cast<std::size_t>(gpus)) {
    unused_.assign(gpus_, std::vector<int>(gpus_, 0));
    for (const platforms::MeshEdge& edge : mesh) {
      unused_[static_cast<std::size_t>(edge.a)][static_cast<std::size_t>(edge.b)] += edge.count;
      unused_[static_cast<std::size_t>(edge.b)][static_cast<std::size_t>(edge.a)] += edge.count;
    }
  }

  /// Returns the largest set of rings found within the budget.
  std::vector<std::vector<int>> run() {
    extend();
    return best_;
  }

 private:
  /// Budget of steps, which bounds the cost of an unfavourable mesh. The mesh of DGX-1 takes a few thousand.
  static constexpr int kMaxSteps = 2'000'000;

  /// An upper bound on further rings: each needs two links of every GPU.
  int max_further_rings() const {
    int bound = 1 << 20;
    for (const auto& row : unused_) {
      int sum = 0;
      for (const int count : row) sum += count;
      bound = std::min(bound, sum / 2);
    }
    return bound;
  }

  /// Tries to add one more ring to `found_`, in every possible way.
  void extend() {
    if (found_.size() > best_.size()) best_ = found_;
    if (static_cast<int>(best_.size() - found_.size()) >= max_further_rings()) return;
    std::vector<int> path = {0};
    std::vector<bool> visited(gpus_, false);
    visited[0] = true;
    walk(path, visited);
  }

  /// Extends a path that begins at GPU 0 until it is a ring.
  void walk(std::vector<int>& path, std::vector<bool>& visited) {
    if (++steps_ > kMaxSteps) return;
    const auto at = static_cast<std::size_t>(path.back());
    if (path.size() == gpus_) {
      if (unused_[at][0] == 0) return;
      change_unused(path, -1);
      found_.push_back(path);
      extend();
      found_.pop_back();
      change_unused(path, 1);
      return;
    }
    for (std::size_t next = 1; next < gpus_; ++next) {
      if (visited[next] || unused_[at][next] == 0) continue;
      visited[next] = true;
      path.push_back(static_cast<int>(next));
      walk(path, visited);
      path.pop_back();
      visited[next] = false;
      if (static_cast<int>(best_.size() - found_.size()) >= max_further_rings()) return;
    }
  }

  /// Adds `change` to the unused links between successive GPUs of a ring.
  void change_unused(const std::vector<int>& path, int change) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto a = static_cast<std::size_t>(path[i]), b = static_cast<std::size_t>(path[(i + 1) % path.size()]);
      unused_[a][b] += change;
      unused_[b][a] += change;
    }
  }

  std::size_t gpus_;
  std::vector<std::vector<int>> unused_;  // links between each pair of GPUs that no found ring uses
  std::vector<std::vector<int>> found_, best_;
  int steps_ = 0;
};

/// Returns cyclic orders of all `gpus` GPUs (Hamiltonian cycles) that use no link of the mesh twice; parallel links
/// count as different links. Returns as many cycles as a bounded depth-first search finds. For two GPUs each link is a
/// ring. A ring uses one direction of its links; the other direction is free for the reverse ring.
std::vector<std::vector<int>> link_disjoint_rings(const std::vector<platforms::MeshEdge>& mesh, int gpus) {
  if (gpus == 2) {  // a ring of two uses both directions of one link
    int links = 0;
    for (const platforms::MeshEdge& edge : mesh) links += edge.count;
    return std::vector<std::vector<int>>(static_cast<std::size_t>(links), {0, 1});
  }
  return RingSearch(mesh, gpus).run();
}

/// Lays out the links and paths of one kind of node.
class NodeBuilder {
 public:
  NodeBuilder(const platforms::Platform& platform, const NodeGroup& group)
      : platform_(platform), instance_(*group.instance) {
    wiring_.instance = group.instance;
    wiring_.gpus = group.gpus_per_node;
    wiring_.paths.resize(wiring_.pair(wiring_.gpus, 0));
  }

  Wiring run(bool leaves_node) {
    const bool joined = platform_.fabric.joins_gpus();
    if (wiring_.gpus > 1 && !joined) {
      assert(instance_.gpu_links || instance_.host_link);  // read_platform() requires one of them
      const auto kind = instance_.gpu_links ? instance_.gpu_links->kind : platforms::GpuLinks::Kind::nvlink;
      if (kind == platforms::GpuLinks::Kind::mesh)
        wire_mesh();
      else if (kind == platforms::GpuLinks::Kind::pcie && is_tree(*instance_.gpu_links))
        wire_pcie();
      else
        wire_ports();
    }
    const bool over_host = leaves_node && !joined && instance_.nic && !instance_.nic->gpu_direct;
    if (over_host) add_hosts();
    if (!over_host) wiring_.host_up.clear(), wiring_.host_down.clear();
    return std::move(wiring_);
  }

 private:
  static bool is_tree(const platforms::GpuLinks& links) {
    return !links.switches.empty() || !links.numa.empty() || links.staging;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(fmt::format("{}: /instances/{}: {}", platform_.file, instance_.name, message));
  }

  Duplex add(const std::string& name, BytesPerSecond bandwidth) {
    wiring_.links.push_back({name + ".up", bandwidth});
    wiring_.links.push_back({name + ".down", bandwidth});
    return {static_cast<int>(wiring_.links.size()) - 2, static_cast<int>(wiring_.links.size()) - 1};
  }

  void add_hosts() {
    if (!wiring_.host_up.empty()) return;
    for (int gpu = 0; gpu < wiring_.gpus; ++gpu) {
      const Duplex link = add(fmt::format("host_link.{}", gpu), instance_.host_link->bandwidth);
      wiring_.host_up.push_back(link.up);
      wiring_.host_down.push_back(link.down);
    }
  }

  LocalPath over_host(int from, int to) const {
    return {{wiring_.host_up[static_cast<std::size_t>(from)], wiring_.host_down[static_cast<std::size_t>(to)]},
            2 * instance_.host_link->latency,
            1};
  }

  /// Splits messages between a pair's path and the host links, in proportion to their bandwidths.
  void split_with_host(BytesPerSecond bandwidth, std::vector<LocalPath>& paths, LocalPath host) {
    const double sum = bandwidth.si + instance_.host_link->bandwidth.si;
    paths[0].share = bandwidth.si / sum;
    host.share = instance_.host_link->bandwidth.si / sum;
    paths.push_back(std::move(host));
  }

  void wire_ports() {
    const platforms::Link& link =
        instance_.gpu_links ? static_cast<const platforms::Link&>(*instance_.gpu_links) : *instance_.host_link;
    const bool both = instance_.gpu_links && instance_.gpu_links->with_host_link;
    if (instance_.gpu_links) {
      for (int gpu = 0; gpu < wiring_.gpus; ++gpu) {
        const Duplex port = add(fmt::format("gpu_link.{}", gpu), link.bandwidth);
        wiring_.gpu_up.push_back(port.up);
        wiring_.gpu_down.push_back(port.down);
      }
    }
    if (!instance_.gpu_links || both) add_hosts();
    for (int from = 0; from < wiring_.gpus; ++from) {
      for (int to = 0; to < wiring_.gpus; ++to) {
        auto& paths = wiring_.paths[wiring_.pair(from, to)];
        if (from == to) continue;
        if (!instance_.gpu_links) {
          paths.push_back(over_host(from, to));
          continue;
        }
        paths.push_back(
            {{wiring_.gpu_up[static_cast<std::size_t>(from)], wiring_.gpu_down[static_cast<std::size_t>(to)]},
             link.latency,
             1});
        if (both) split_with_host(link.bandwidth, paths, over_host(from, to));
      }
    }
    wiring_.to_switch = link.latency / 2;
  }

  /// Returns the GPUs on a path of the fewest hops over the mesh, both ends included; empty if there is none.
  static std::vector<int> shortest_path(const std::vector<std::vector<int>>& edge, int from, int to) {
    std::vector<int> before(edge.size(), -1);
    std::queue<int> open({from});
    before[static_cast<std::size_t>(from)] = from;
    while (!open.empty() && before[static_cast<std::size_t>(to)] < 0) {
      const int at = open.front();
      open.pop();
      for (int next = 0; next < static_cast<int>(edge.size()); ++next) {
        if (edge[static_cast<std::size_t>(at)][static_cast<std::size_t>(next)] < 0 ||
            before[static_cast<std::size_t>(next)] >= 0)
          continue;
        before[static_cast<std::size_t>(next)] = at;
        open.push(next);
      }
    }
    if (before[static_cast<std::size_t>(to)] < 0) return {};
    std::vector<int> passed = {to};
    while (passed.back() != from) passed.push_back(before[static_cast<std::size_t>(passed.back())]);
    std::reverse(passed.begin(), passed.end());
    return passed;
  }

  void wire_mesh() {
    const platforms::GpuLinks& links = *instance_.gpu_links;
    const auto gpus = static_cast<std::size_t>(wiring_.gpus);
    std::vector<std::vector<int>> edge(gpus, std::vector<int>(gpus, -1));
    std::vector<platforms::MeshEdge> used;
    for (const platforms::MeshEdge& item : links.mesh) {
      if (item.a >= wiring_.gpus || item.b >= wiring_.gpus) continue;  // one of its GPUs is not used
      const Duplex link = add(fmt::format("gpu_link.{}-{}", item.a, item.b), item.count * links.bandwidth);
      edge[static_cast<std::size_t>(item.a)][static_cast<std::size_t>(item.b)] = link.up;
      edge[static_cast<std::size_t>(item.b)][static_cast<std::size_t>(item.a)] = link.down;
      used.push_back(item);
    }
    if (instance_.host_link) add_hosts();
    wiring_.rings = link_disjoint_rings(used, wiring_.gpus);
    // Where the links allow no ring, NCCL lets one GPU relay messages between two of its neighbours (since 2.8, "NVB"
    // in its logs). On 5 GPUs of a DGX-1 the fifth has one neighbour: vTrain measured 37 GB/s there, 23 on 2 and 45
    // on 3.
    const bool relayed = wiring_.rings.empty();
    for (int from = 0; from < wiring_.gpus; ++from) {
      for (int to = 0; to < wiring_.gpus; ++to) {
        if (from == to) continue;
        auto& paths = wiring_.paths[wiring_.pair(from, to)];
        const int direct = edge[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
        if (direct >= 0) {
          paths.push_back({{direct}, links.latency, 1});
          if (links.with_host_link && instance_.host_link)
            split_with_host(wiring_.links[static_cast<std::size_t>(direct)].bandwidth, paths, over_host(from, to));
          continue;
        }
        const auto passed = shortest_path(edge, from, to);
        if (instance_.host_link && !(relayed && passed.size() == 3)) {
          paths.push_back(over_host(from, to));
        } else {
          if (passed.empty())
            fail(
                fmt::format("gpu_links: no way from GPU {} to GPU {}: the mesh is not connected and there "
                            "is no host_link",
                            from, to));
          LocalPath path{{}, static_cast<double>(passed.size() - 1) * links.latency, 1};
          for (std::size_t i = 1; i < passed.size(); ++i)
            path.links.push_back(edge[static_cast<std::size_t>(passed[i - 1])][static_cast<std::size_t>(passed[i])]);
          paths.push_back(std::move(path));
        }
      }
    }
  }

  /// The index of the group that holds the GPU; -1: none.
  static int group_of(const std::vector<std::vector<int>>& groups, int gpu) {
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (std::find(groups[i].begin(), groups[i].end(), gpu) != groups[i].end()) return static_cast<int>(i);
    return -1;
  }

  void wire_pcie() {
    const platforms::GpuLinks& pcie = *instance_.gpu_links;
    std::vector<Duplex> slots, uplinks, memory;
    for (int gpu = 0; gpu < wiring_.gpus; ++gpu) {
      slots.push_back(add(fmt::format("pcie_slot.{}", gpu), pcie.bandwidth));
      wiring_.gpu_up.push_back(slots.back().up);
      wiring_.gpu_down.push_back(slots.back().down);
    }
    for (std::size_t i = 0; i < pcie.switches.size(); ++i)
      uplinks.push_back(add(fmt::format("pcie_switch.{}", i), pcie.switch_bandwidth.value_or(pcie.bandwidth)));
    const auto domains = std::max<std::size_t>(pcie.numa.size(), 1);
    std::vector<Duplex> sockets;
    for (std::size_t i = 0; i < domains; ++i) {
      sockets.push_back(add(fmt::format("numa.{}", i), pcie.numa_bandwidth.value_or(pcie.bandwidth)));
      if (pcie.staging) memory.push_back(add(fmt::format("host_memory.{}", i), pcie.staging->bandwidth));
    }
    for (int from = 0; from < wiring_.gpus; ++from) {
      for (int to = 0; to < wiring_.gpus; ++to) {
        if (from == to) continue;
        const int out = group_of(pcie.switches, from), in = group_of(pcie.switches, to);
        const int here = std::max(group_of(pcie.numa, from), 0), there = std::max(group_of(pcie.numa, to), 0);
        LocalPath path{{slots[static_cast<std::size_t>(from)].up}, pcie.latency, 1};
        const bool through_host = pcie.staging || out < 0 || out != in;
        if (through_host && out >= 0) path.links.push_back(uplinks[static_cast<std::size_t>(out)].up);
        if (pcie.staging) {
          path.links.push_back(memory[static_cast<std::size_t>(here)].up);
          path.latency += pcie.staging->latency;
        }
        if (here != there) {
          path.links.push_back(sockets[static_cast<std::size_t>(here)].up);
          path.links.push_back(sockets[static_cast<std::size_t>(there)].down);
          path.latency += pcie.numa_latency;
        }
        if (through_host && in >= 0) path.links.push_back(uplinks[static_cast<std::size_t>(in)].down);
        path.links.push_back(slots[static_cast<std::size_t>(to)].down);
        wiring_.paths[wiring_.pair(from, to)].push_back(std::move(path));
      }
    }
  }

  const platforms::Platform& platform_;
  const platforms::Instance& instance_;
  Wiring wiring_;
};

}  // namespace

Wiring wire_node(const platforms::Platform& platform, const NodeGroup& group, bool leaves_node) {
  return NodeBuilder(platform, group).run(leaves_node);
}

}  // namespace ganymede::sim
