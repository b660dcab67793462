#pragma once
// Rings for a node whose GPUs are joined by a mesh of links.

#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::sim {

/// Returns cyclic orders of all `gpus` GPUs (Hamiltonian cycles) that use no link of the mesh twice; parallel links
/// count as different links. Returns as many cycles as a bounded depth-first search finds. For two GPUs each link is a
/// ring. A ring uses one direction of its links; the other direction is free for the reverse ring.
std::vector<std::vector<int>> link_disjoint_rings(const std::vector<platforms::MeshEdge>& mesh, int gpus);

}  // namespace ganymede::sim
