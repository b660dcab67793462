#pragma once
// Access to the GPU backend. It is a module that is loaded on demand, because a program linked to CUDA's libraries
// could not start on a machine without them.

#include <memory>
#include <optional>
#include <string>

#include "kernel/ops/backend.hpp"
#include "kernel/ops/cuda/algorithm_choices.hpp"
#include "kernel/ops/cuda/kept_plans.hpp"

namespace ganymede::kernel {

/// Precision of matrix products and convolutions. Sums, weights and their gradients are fp32 in all of them.
enum class Precision {
  fp32,
  tf32,  ///< operands rounded to 10 bits of mantissa (Ampere and later)
  bf16,  ///< activations and their gradients are stored in bf16, and products read copies of the weights in bf16
};
inline constexpr std::string_view kPrecisionNames[] = {"fp32", "tf32", "bf16"};

/// From so many outputs an image a convolution and what follows are worth a plan of their own, which cuDNN compiles for
/// a second or more. For example 65,536 outputs in bf16 of 64 images are 8 MiB; not to read and write them again saves
/// 4 us of a step at 4.3 TB/s.
inline constexpr int kLeastFusedOutputs = 1 << 16;

struct CudaOptions {
  int device = 0;                           ///< index of the machine's GPU
  std::optional<Precision> precision = {};  ///< default: tf32 if the GPU has it, else fp32
  /// Captures a step as a CUDA graph and replays it: one launch per step instead of hundreds.
  bool graph = true;
  /// Draws random numbers on the host, as the CPU backend does, so that both can be compared. `graph` must then be
  /// false.
  bool host_random = false;
  int loads_a_step = 1;  ///< batches of images that a step loads
  /// Times the algorithms of each convolution, takes the fastest and keeps it here, for as long as the backend is used.
  /// Null: takes the first of cuDNN's heuristics.
  AlgorithmChoices* choices = nullptr;
  /// Keeps plans that cuDNN has compiled, for as long as the backend is used. Null: each is compiled again.
  KeptPlans* plans = nullptr;
  /// Convolutions with so many outputs an image, or more, may be one kernel with what follows.
  int least_fused_outputs = kLeastFusedOutputs;
};

/// The functions that the module exports. They throw ConfigError, Infeasible and Failure.
using MakeCudaBackend = Backend* (*)(const CudaOptions& options);
using CountGpus = int (*)();
inline constexpr const char* kMakeCudaBackend = "ganymede_make_cuda_backend";
inline constexpr const char* kCountGpus = "ganymede_count_gpus";

/// Opens the GPU options.device. Throws ConfigError with the reason if that is not possible: a build without CUDA, a
/// missing library, no GPU, no driver.
std::unique_ptr<Backend> open_cuda_backend(const CudaOptions& options);

/// Number of GPUs that open_cuda_backend can use; if it is 0, the reason.
struct Gpus {
  int count = 0;
  std::string why_none;
};
Gpus count_gpus();

}  // namespace ganymede::kernel
