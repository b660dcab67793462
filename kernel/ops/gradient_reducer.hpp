#pragma once
// Averages gradients between the replicas of a training on their devices (NCCL) while the backward pass continues.

#include <cstddef>

#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

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
  /// so far and concurrently with later ones. The result is valid for operations called after finish().
  virtual void reduce(float* gradients, std::size_t count) = 0;
  /// Makes later operations wait for all reductions started so far. Does not block the host.
  virtual void finish() = 0;
  /// Ends the connection: waits for the reductions, or aborts them if this or another replica is failing. Must be
  /// called before memory is freed that they use, because freeing it waits for them on the device.
  virtual void leave() = 0;
};

}  // namespace ganymede::kernel
