#pragma once
// A backend: a device that trains, with its operations, its timeline and its way to reduce gradients.

#include <memory>
#include <string>

#include "kernel/ops/device_timeline.hpp"
#include "kernel/ops/gradient_reducer.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

struct BackendInfo {
  std::string backend;             ///< "eigen" or "cuda"
  std::string device;              ///< for example "AMD EPYC, 2 threads"
  std::string instructions;        ///< instruction set of the inner loops: "AVX-512", "sm_90, tf32"
  int threads = 1;                 ///< host threads in use
  std::string bus_id = {};         ///< a GPU's PCI address; empty on the CPU
  std::string precision = "fp32";  ///< precision of the operands of products and convolutions
};

struct Backend {
  BackendInfo info;
  std::unique_ptr<DeviceTimeline> timeline;
  std::unique_ptr<TensorOps> ops;  ///< on that timeline
  /// Null: the device reduces no gradients; BucketReducer does it on the host.
  std::unique_ptr<GradientReducer> gradient_reducer = nullptr;
};

}  // namespace ganymede::kernel
