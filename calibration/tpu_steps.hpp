#pragma once
// A step on a TPU: its kernels as XLA compiles them, with arrays filled up to the chip's tiles.

#include <optional>

#include "calibration/kernel_workload.hpp"

namespace ganymede::calibration {

/// The phases of an entry on a TPU. A product or convolution takes the longer of its multiply-adds and its operands'
/// bytes; both count what fills the tiles of 8 x 128 numbers up. What moves numbers beside one is fused with it, so
/// only operands that it reads beyond the result are counted, and a normalization, whose result needs all numbers
/// first, reads and writes them once more. Gaudi and Trainium, which platforms call TPUs too, are taken to do the same,
/// which is said. Nothing if the target is no TPU, or the trace lists no kernels.
std::optional<KernelTimes> tpu_times(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                     const platforms::Gpu& target);

}  // namespace ganymede::calibration
