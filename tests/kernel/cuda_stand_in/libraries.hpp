#pragma once
// Parts that the stand-ins of cuBLAS and cuDNN share.

#include "machine.hpp"

namespace ganymede::kernel::stand_in {

/// A handle of cuBLAS or cuDNN.
struct LibraryState {
  int device;
  cudaStream_t stream = nullptr;
  const void* workspace = nullptr;
};

/// Adds a computation of a library to the handle's stream.
void compute(Machine& here, const LibraryState& library, const char* name, std::function<void()> work,
             std::vector<const void*> operands);

}  // namespace ganymede::kernel::stand_in
