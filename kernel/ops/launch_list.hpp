#pragma once
// Launches that tensor operations list (TensorOps::list_launches).

#include <vector>

#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Name of the kernels that an operation launches beyond those that are listed with their shapes. Their traffic is
/// counted in those, so that each costs little more than its launch.
inline constexpr const char* kFurtherKernel = "further";

struct LaunchList {
  int batch = 1;                             ///< images of the operations that are listed
  std::vector<traces::TraceKernel> kernels;  ///< with their shapes for one image; phases are not named yet
};

}  // namespace ganymede::kernel
