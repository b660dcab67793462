#pragma once
// Hands out pieces of one block of device memory. Layers are planned twice by the same code: without a block, to learn
// the size; then with it.

#include <cstddef>
#include <cstdint>

#include "kernel/tensor.hpp"

namespace ganymede::kernel {

class Arena {
 public:
  Arena() = default;  ///< only counts; what it hands out is null
  explicit Arena(const Buffer& block) : base_(static_cast<std::byte*>(block.memory.get())) {}

  Tensor tensor(int features, int batch) {
    Tensor result{nullptr, features, batch};
    result.data = reinterpret_cast<float*>(take(result.size() * sizeof(float)));
    return result;
  }
  /// What must stay as it is, however activations are stored.
  Tensor exact(int features, int batch) {
    return beside_ == nullptr ? tensor(features, batch) : beside_->tensor(features, batch);
  }
  Mask mask(int features, int batch) {
    Mask result{nullptr, features, batch};
    Arena& arena = beside_ == nullptr ? *this : *beside_;
    result.data = reinterpret_cast<std::uint8_t*>(arena.take(result.size()));
    return result;
  }
  std::byte* bytes(std::size_t count) { return take(count); }
  std::size_t used() const { return used_; }

  /// Another over `memory`, which may be null, whose exact things this one keeps.
  Arena inside(std::byte* memory) {
    Arena arena;
    arena.base_ = memory;
    arena.beside_ = this;
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
  Arena* beside_ = nullptr;
};

}  // namespace ganymede::kernel
