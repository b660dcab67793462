#pragma once
// The rank counts, topologies, sizes and variants that every test of schemes walks.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {

/// A request that the scheme can serve, and its description for messages of tests.
struct Case {
  const AllReduceScheme* scheme;
  PlanRequest request;

  Schedule schedule() const { return scheme->plan(request); }
  std::string name() const {
    const Topology& topology = request.topology;
    return std::string(scheme->name) + ":" + request.variant + " " + std::string(to_string(request.collective)) + ", " +
           std::to_string(topology.ranks) + " ranks, " + std::to_string(topology.gpus_per_node) + " a node, " +
           std::to_string(request.bytes) + " bytes";
  }
};

/// Rank counts that are powers of two, odd or prime, with one GPU a node, several GPUs a node (the last node has fewer
/// if they do not divide), or a single node; nodes of different sizes; switches that reduce; a torus; rails.
inline std::vector<Topology> all_topologies() {
  std::vector<Topology> all;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 33})
    for (const int gpus_per_node : {1, 2, 4, 8, ranks}) all.push_back(clustered(ranks, gpus_per_node));
  Topology unlike = clustered(10, 4);
  unlike.node_sizes = {4, 4, 1, 1};
  all.push_back(unlike);
  Topology switched = clustered(6, 2);
  switched.fabric_switch = true;
  all.push_back(switched);
  switched.node_switch = true;
  all.push_back(switched);
  Topology inside = clustered(8, 8);
  inside.node_switch = true;
  inside.rings = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
  all.push_back(inside);
  Topology torus = flat(12);
  torus.torus = {2, 3, 2};
  all.push_back(torus);
  Topology rails = clustered(16, 4);
  rails.rails = 2;
  all.push_back(rails);
  return all;
}

inline std::vector<std::string> variants_of(const std::string& scheme) {
  if (scheme == "multi-ring") return {"", "1", "3"};
  if (scheme == "tree" || scheme == "double-binary-tree" || scheme == "in-network") return {"", "1", "5"};
  if (scheme == "two-level") return {"", "sharded"};
  if (scheme == "parameter-server") return {"", "whole", "2"};
  if (scheme == "hierarchical-parameter-server") return {"", "whole", "all", "2/grpc", "2/duplex"};
  if (scheme == "torus") return {"", "2x4", "4x4", "2x2x2"};
  if (scheme == "nccl") return {"", "ring/simple", "ring/ll", "tree/simple", "2.4.8"};
  return {""};
}

/// Every row of the table with every collective on every topology and size that it can serve.
inline std::vector<Case> all_cases(const std::vector<Collective>& collectives = {Collective::all_reduce}) {
  std::vector<Case> cases;
  for (const AllReduceScheme& scheme : allreduce_schemes())
    for (const Topology& topology : all_topologies())
      // No bytes, one byte, fewer bytes than most rank counts, one byte fewer than ranks, and a size that few rank
      // counts divide.
      for (const std::int64_t bytes :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{topology.ranks} - 1, std::int64_t{3} << 20})
        for (const Collective collective : collectives)
          for (const std::string& variant : variants_of(std::string(scheme.name))) {
            Case item{&scheme, {topology, bytes, collective, variant}};
            if (!scheme.why_not(item.request)) cases.push_back(std::move(item));
          }
  return cases;
}

}  // namespace ganymede::sim
