#pragma once
// Rings over a mesh of links.

#include <vector>

#include "platforms/platform.hpp"

namespace ganymede {

/// Cyclic orders of all `gpus` GPUs that use no link of the mesh twice, where parallel links count singly: as many as a
/// depth-first search finds one after the other. For two GPUs each link is a ring. A ring leaves one link of each GPU
/// to the next; the way back is another direction of the same links.
std::vector<std::vector<int>> link_disjoint_rings(const std::vector<MeshEdge>& mesh, int gpus);

}  // namespace ganymede
