#pragma once
// Tensors are views; buffers own device memory. Every activation is [features x batch], feature-major: the images of a
// batch lie side by side. The features of an image are [channels x height x width]. Weights are as in PyTorch:
// [outputs x inputs] of nn.Linear, [outputs x inputs x height x width] of nn.Conv2d.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ganymede::kernel {

/// A view of floats in device memory, [features x batch].
struct Tensor {
  float* data = nullptr;
  int features = 0;
  int batch = 0;

  std::size_t size() const { return static_cast<std::size_t>(features) * static_cast<std::size_t>(batch); }
};

/// A view of bytes in device memory, [features x batch]: which units a dropout kept (1) or dropped (0).
struct Mask {
  std::uint8_t* data = nullptr;
  int features = 0;
  int batch = 0;

  std::size_t size() const { return static_cast<std::size_t>(features) * static_cast<std::size_t>(batch); }
};

/// Device memory in use, in bytes.
struct MemoryCount {
  std::size_t now = 0, peak = 0;
  void add(std::size_t bytes) { peak = std::max(peak, now += bytes); }
};

struct BufferRelease {
  void (*release)(void* data, std::size_t bytes) = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<MemoryCount> count = {};  ///< which holds these bytes
  void operator()(void* data) const {
    release(data, bytes);
    if (count) count->now -= bytes;
  }
};

/// Device memory that a backend allocated, zeroed, aligned to 64 bytes at least. Moves only.
struct Buffer {
  std::unique_ptr<void, BufferRelease> memory;

  float* floats() const { return static_cast<float*>(memory.get()); }
  std::size_t bytes() const { return memory ? memory.get_deleter().bytes : 0; }
};

}  // namespace ganymede::kernel
