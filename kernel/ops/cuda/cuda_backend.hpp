#pragma once
// The GPU backend from outside: a module that is loaded when it is asked for, because a program linked to CUDA's
// libraries could not start where they are not.

#include <memory>
#include <optional>
#include <string>

#include "kernel/ops.hpp"

namespace ganymede::kernel {

/// Of products and convolutions. Everything else is in fp32, and so are all weights and activations.
enum class Precision {
  fp32,
  tf32,  ///< operands rounded to 10 bits of mantissa (Ampere and later)
  bf16,  ///< operands rounded to bf16, sums in fp32; the weights themselves stay fp32
};
inline constexpr std::string_view kPrecisionNames[] = {"fp32", "tf32", "bf16"};

struct CudaOptions {
  int device = 0;
  std::optional<Precision> precision = {};  ///< not said: tf32 where the GPU has it
  /// Captures a step as a CUDA graph and replays it: one launch a step instead of hundreds.
  bool graph = true;
  /// Random numbers drawn on the host, as the CPU backend draws them, so that both can be compared. Not with `graph`.
  bool host_random = false;
  int loads_a_step = 1;  ///< batches of images
};

/// What the module exports. It throws ConfigError, Infeasible and Failure.
using MakeCudaOps = Ops* (*)(const CudaOptions& options);
using CountGpus = int (*)();
inline constexpr const char* kMakeCudaOps = "ganymede_make_cuda_ops";
inline constexpr const char* kCountGpus = "ganymede_count_gpus";

/// ConfigError that says why there is none: no such build, a library that is missing, no GPU, no driver for it.
std::unique_ptr<Ops> open_cuda_ops(const CudaOptions& options);

/// GPUs that open_cuda_ops can use; 0 and the reason when there are none.
struct Gpus {
  int count = 0;
  std::string why_none;
};
Gpus count_gpus();

}  // namespace ganymede::kernel
