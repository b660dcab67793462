#pragma once
// Hands out pieces of one block of device memory. The same code plans layers twice: without a block, to learn its size,
// then with the block.

#include <cstddef>
#include <cstdint>

#include "kernel/tensor.hpp"

namespace ganymede::kernel {

class Arena {
 public:
  Arena() = default;  ///< only counts; the pieces are null
  explicit Arena(const Buffer& block) : base_(static_cast<std::byte*>(block.memory.get())) {}

  Tensor tensor(int features, int batch) {
    Tensor result{nullptr, features, batch};
    result.data = reinterpret_cast<float*>(take(result.size() * sizeof(float)));
    return result;
  }
  /// A tensor that keeps its values from the forward to the backward pass, whatever the ActivationStorage.
  Tensor persistent_tensor(int features, int batch) {
    return persistent_ == nullptr ? tensor(features, batch) : persistent_->tensor(features, batch);
  }
  /// A mask that keeps its values likewise.
  Mask mask(int features, int batch) {
    Mask result{nullptr, features, batch};
    Arena& arena = persistent_ == nullptr ? *this : *persistent_;
    result.data = reinterpret_cast<std::uint8_t*>(arena.take(result.size()));
    return result;
  }
  std::byte* bytes(std::size_t count) { return take(count); }
  std::size_t used() const { return used_; }

  /// An arena over `memory` (null: it only counts) for activations that may be overwritten. Persistent tensors and
  /// masks come from this arena.
  Arena over(std::byte* memory) {
    Arena arena;
    arena.base_ = memory;
    arena.persistent_ = this;
    return arena;
  }

 private:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }

  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  Arena* persistent_ = nullptr;
};

}  // namespace ganymede::kernel
