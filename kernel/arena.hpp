#pragma once
// Hands out pieces of one block of device memory. The same planning code runs twice: with an arena that only counts, to
// learn the size of the block, then with an arena over the block.

#include <cstddef>
#include <cstdint>

#include "kernel/tensor.hpp"

namespace ganymede::kernel {

/// Pieces are handed out one after the other, each aligned to 64 bytes, and are never taken back. The block must be as
/// large as used() is after the same calls on an arena that only counts.
class Arena {
 public:
  /// An arena that only counts; the pieces are null. `elements` is the type of tensors' elements.
  explicit Arena(ElementType elements) : element_type_(elements) {}
  Arena(const Buffer& block, ElementType elements)
      : base_(static_cast<std::byte*>(block.memory.get())), element_type_(elements) {}
  ElementType element_type() const { return element_type_; }

  /// A tensor [features x batch]; its data is null if the arena only counts.
  Tensor tensor(int features, int batch) {
    Tensor result{nullptr, features, batch};
    result.data = take(result.size() * bytes_of(element_type_));
    return result;
  }
  /// An array of floats that keeps its values from the forward to the backward pass, whatever the ActivationStorage.
  float* floats(std::size_t count) { return reinterpret_cast<float*>(persistent().take(count * sizeof(float))); }
  /// A mask [features x batch] that also keeps its values between the passes.
  Mask mask(int features, int batch) {
    Mask result{nullptr, features, batch};
    result.data = reinterpret_cast<std::uint8_t*>(persistent().take(result.size()));
    return result;
  }
  std::byte* bytes(std::size_t count) { return take(count); }  ///< a piece of `count` bytes
  std::size_t used() const { return used_; }  ///< bytes handed out so far, with the gaps between pieces

  /// An arena over `memory` (null: it only counts) for activations that may be overwritten. Arrays of floats and masks
  /// come from this arena.
  Arena over(std::byte* memory) {
    Arena arena = *this;
    arena.base_ = memory;
    arena.used_ = 0;
    arena.persistent_ = this;
    return arena;
  }

 private:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

  Arena& persistent() { return persistent_ == nullptr ? *this : *persistent_; }
  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }

  std::byte* base_ = nullptr;
  ElementType element_type_;
  std::size_t used_ = 0;
  Arena* persistent_ = nullptr;
};

}  // namespace ganymede::kernel
