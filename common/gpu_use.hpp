#pragma once
// The uses of the seconds of rented GPUs: the categories of a result's `gpu_seconds`.

#include <array>
#include <cstddef>
#include <string_view>

namespace ganymede {

enum class GpuUse : std::size_t {
  compute,                ///< phases of the step that run on the GPU
  exposed_communication,  ///< waiting for gradients that no computation hides
  straggler,              ///< waiting for a slower worker to arrive at a collective
  input_stall,            ///< waiting for the next batch
  checkpoint,             ///< waiting for a checkpoint to be written or read
  evaluation,             ///< measuring the quality of the model while training waits
  provisioning,           ///< rented, not yet training: boot, start of the framework, staging of data
  lost,                   ///< work that had to be done again
  idle,                   ///< all other time, for example of GPUs of a rented instance that the run does not use
};

/// The names in a result's `gpu_seconds`, in the order of GpuUse.
inline constexpr std::array<std::string_view, 9> kGpuUseNames = {
    "compute",    "exposed_communication", "straggler", "input_stall", "checkpoint",
    "evaluation", "provisioning",          "lost",      "idle"};

}  // namespace ganymede
