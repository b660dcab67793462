#pragma once
// Tensors are views; buffers own device memory. Every activation is [features x batch]; the features of an image are
// [channels x frames x height x width]. The backend decides the order in memory (see MemoryLayout) and the type of the
// elements. Weights have PyTorch's shapes: [outputs x inputs] as in nn.Linear, [outputs x inputs x height x width] as
// in nn.Conv2d. They are arrays of floats, and so are gradients of weights and statistics.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ganymede::kernel {

/// The type in which a backend stores the elements of all tensors, that is activations and their gradients.
enum class ElementType { fp32, bf16 };
constexpr std::size_t bytes_of(ElementType type) { return type == ElementType::bf16 ? 2 : 4; }

/// A view of elements in device memory, [features x batch]; their type is TensorOps::element_type().
struct Tensor {
  void* data = nullptr;
  int features = 0;
  int batch = 0;

  std::size_t size() const { return static_cast<std::size_t>(features) * static_cast<std::size_t>(batch); }
  /// The elements of a backend that stores fp32.
  float* floats() const { return static_cast<float*>(data); }
};

/// A view of bytes in device memory, [features x batch]: 1 for each unit that dropout keeps, 0 for each that it drops.
struct Mask {
  std::uint8_t* data = nullptr;
  int features = 0;
  int batch = 0;

  std::size_t size() const { return static_cast<std::size_t>(features) * static_cast<std::size_t>(batch); }
};

/// Bytes of device memory in use: now, and at the peak.
struct MemoryCount {
  std::size_t now = 0, peak = 0;
  void add(std::size_t bytes) { peak = std::max(peak, now += bytes); }
};

/// Frees a Buffer's memory of `bytes` bytes by the backend's function `release`.
struct BufferRelease {
  void (*release)(void* data, std::size_t bytes) = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<MemoryCount> count = {};  ///< includes these bytes until they are released; null: not counted
  std::shared_ptr<void> also = {};          ///< is released with the memory
  void operator()(void* data) const {
    release(data, bytes);
    if (count) count->now -= bytes;
  }
};

/// Owns device memory that a backend allocated: zeroed, aligned to at least 64 bytes.
struct Buffer {
  std::unique_ptr<void, BufferRelease> memory;

  float* floats() const { return static_cast<float*>(memory.get()); }
  std::size_t bytes() const { return memory ? memory.get_deleter().bytes : 0; }
};

}  // namespace ganymede::kernel
