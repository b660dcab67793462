#pragma once
// Averages gradients between the replicas of a training on their devices (NCCL) while the backward pass continues.

#include <cstddef>
#include <cstdint>

#include "kernel/compression.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

/// How the gradients of a bucket are sent, and the device memory for that.
struct PackedGradients {
  Compression compression = Compression::none;
  std::size_t bytes = 0;         ///< of the compressed bucket; not used without compression, as what follows
  std::uint8_t* mine = nullptr;  ///< [bytes]
  std::uint8_t* all = nullptr;   ///< [replicas x bytes]
  float* residual = nullptr;     ///< what compression lost, added to the next step's gradients; null: it is dropped
};

class GradientReducer {
 public:
  GradientReducer() = default;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  virtual ~GradientReducer() = default;

  /// Connects this device with those of the other replicas; all replicas must call it, once, before the first reduce().
  /// `communicator` must outlive the backend. Throws Failure if the devices cannot reach each other.
  virtual void join(Communicator& communicator) = 0;
  /// Starts to replace `count` gradients in device memory by their mean over the replicas, after the operations called
  /// so far and concurrently with later ones. The result is valid for operations called after finish(). What `packed`
  /// refers to must live until then, and as long as a captured step that contains the call.
  virtual void reduce(float* gradients, std::size_t count, const PackedGradients& packed) = 0;
  /// Makes later operations wait for all reductions started so far. Does not block the host.
  virtual void finish() = 0;
  /// Ends the connection: waits for the reductions, or aborts them if this or another replica is failing. Must be
  /// called before memory is freed that they use, because freeing it waits for them on the device.
  virtual void leave() = 0;
};

}  // namespace ganymede::kernel
