#pragma once
// The device memory of a training in PyTorch that is given as a list of layers: what its caching allocator has handed
// out at the peak of a step (torch.cuda.max_memory_allocated).

#include <map>
#include <string>

#include "traces/layer_list.hpp"

namespace ganymede::traces {

/// Bytes by kind at the peak of a step with `batch` images: parameters, averages, gradients and optimizer, which live
/// as long as the training; activations, what autograd keeps for backward passes that are still to come;
/// double_backward, what it keeps beside them to differentiate gradients; passing, the gradients and temporaries of the
/// layer that is worked on; workspace, that of cuDNN and cuBLAS; data, and what the list states to lie beside. The
/// passes of the list run in their order: a graph lives from its forward pass to the end of its backward pass, layer by
/// layer.
std::map<std::string, double> allocated_memory(const LayerList& list, int batch);

}  // namespace ganymede::traces
