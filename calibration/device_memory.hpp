#pragma once
// The memory of a GPU that a training takes, and the largest batch that fits one.

#include <map>
#include <string>

#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

struct DeviceMemory {
  /// Bytes by kind: those of the trace; of PyTorch also buckets (of gradients, on several GPUs), fragmentation (what
  /// its allocator holds without use) and context (the CUDA context with its kernels).
  std::map<std::string, double> bytes;
  double allocated = 0;                    ///< what the allocator has handed out, without fragmentation and context
  double low = 0, expected = 0, high = 0;  ///< of all of it, with the ends of a 90 % interval
  std::string measured;                    ///< the recipe's published peak that it was carried from; empty: counted
};

/// The memory of a step of `batch` images on one of the GPUs, in the stage that takes the most. Between and beyond the
/// batches of the trace, what lives as long as the weights is constant, and the rest straight. What our kernel takes is
/// exact. Of PyTorch (a list of layers, whose tensors are counted, or a recorded peak) the interval holds the error of
/// counting, the spread of fragmentation and the versions of CUDA. Where a recipe states a peak of the same layers and
/// images, what is counted of the pass is scaled to it.
DeviceMemory device_memory(const traces::StepTrace& trace, int batch, const platforms::Gpu& gpu, bool several_gpus);
/// That of one entry of the trace.
DeviceMemory device_memory(const traces::StepTrace& trace, const traces::TraceBatch& entry, const platforms::Gpu& gpu,
                           bool several_gpus);

/// The largest batch whose memory's upper end (`surely`) or expected value fits the GPU; 0 if a batch of one does not.
int largest_batch(const traces::StepTrace& trace, const platforms::Gpu& gpu, bool several_gpus, bool surely);

/// "12.3 GiB", or "12.3 GiB (10.1 to 16.4 GiB)" if it is not exact.
std::string to_text(const DeviceMemory& memory);

}  // namespace ganymede::calibration
