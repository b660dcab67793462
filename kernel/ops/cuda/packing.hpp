#pragma once
// Copies of numbers on a GPU, and their compression.

#include <cstdint>

#include "kernel/compression.hpp"
#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/timeline.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

template <class Value, class Device>
void copy_values(Timeline<Device>& timeline, void* to, const void* from, std::size_t count) {
  each_element(
      timeline, count, [=] GANYMEDE_DEVICE(std::size_t, Value & copy, Value value) { copy = value; },
      Written<Value>{static_cast<Value*>(to)}, static_cast<const Value*>(from));
}

/// Copies an even number of bytes.
template <class Device>
void copy_bytes(Timeline<Device>& timeline, void* to, const void* from, std::size_t bytes) {
  const auto units = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (units % sizeof(std::uint32_t) == 0)
    return copy_values<std::uint32_t>(timeline, to, from, bytes / sizeof(std::uint32_t));
  copy_values<std::uint16_t>(timeline, to, from, bytes / sizeof(std::uint16_t));
}

template <class E, class Device>
void pack_numbers(Timeline<Device>& timeline, Compression compression, std::uint8_t* to, const E* from,
                  std::size_t count) {
  if (compression == Compression::none) return copy_bytes(timeline, to, from, count * sizeof(E));
  if (compression == Compression::int8) {
    timeline.each((count + kInt8Block - 1) / kInt8Block,
                  [=] GANYMEDE_DEVICE(std::size_t block) { pack_bytes(to, from, count, block); });
    return;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  const bool ieee = compression == Compression::fp16;
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, std::uint16_t & code, E v) { code = ieee ? to_fp16(v) : to_bf16(v); },
      Written<std::uint16_t>{halves}, from);
}

template <class E, class Device>
void unpack_numbers(Timeline<Device>& timeline, Compression compression, E* to, const std::uint8_t* from,
                    std::size_t count) {
  if (compression == Compression::none) return copy_bytes(timeline, to, from, count * sizeof(E));
  if (compression == Compression::int8)
    return each_element(
        timeline, count, [=] GANYMEDE_DEVICE(std::size_t i, E & v) { v = unpack_byte(from, i); }, Written<E>{to});
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  const bool ieee = compression == Compression::fp16;
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, E & v, std::uint16_t code) { v = ieee ? from_fp16(code) : from_bf16(code); },
      Written<E>{to}, halves);
}

}  // namespace ganymede::kernel::cuda
