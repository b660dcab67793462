#pragma once
// The rank counts, topologies and sizes that every test of schemes walks.

#include <cstdint>
#include <vector>

#include "sim/collectives/topology.hpp"

namespace ganymede {

struct Case {
  Topology topology;
  std::int64_t bytes;
};

/// Powers of two, odd counts and primes; one GPU a node, several (the last node ragged where they do not divide), one
/// node.
inline std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 33}) {
    for (const int gpus_per_node : {1, 2, 4, 8, ranks}) {
      // None, one byte, fewer bytes than most counts, one fewer than ranks, and a size that few of the counts divide.
      for (const std::int64_t bytes :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{ranks} - 1, std::int64_t{64} << 20}) {
        cases.push_back({Topology{ranks, gpus_per_node}, bytes});
      }
    }
  }
  return cases;
}

}  // namespace ganymede
