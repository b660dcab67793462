#pragma once
// Gives the kernels of a list of layers the times that a profiler measured.

#include <string>
#include <vector>

#include "traces/layer_list.hpp"

namespace ganymede::traces {

/// A kernel of a profiled step.
struct ProfiledKernel {
  std::string phase;
  double seconds = 0;
  bool matrix = false;  ///< a convolution or a product
};

struct MeasuredKernels {
  std::vector<TraceKernel> kernels;  ///< of the profile's phases, with TraceKernel::measured_s
  std::string note;                  ///< how they were matched, for people
};

/// If each step has as many convolutions and products as the list, they are matched one by one, in order; otherwise the
/// time of all of them is divided in proportion to their FLOPs. That of all other kernels is divided in proportion to
/// the numbers that they move. All steps must have the same phases; there must be at least one. No kernels if the list
/// has convolutions or products and the profile none.
MeasuredKernels measured_kernels(const LayerList& list, int batch,
                                 const std::vector<std::vector<ProfiledKernel>>& steps);

}  // namespace ganymede::traces
