// The functions of TensorOps that compute nothing: memory, and copies between the host's order and the device's.

#include <cassert>
#include <vector>

#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {
namespace {

/// The floats after which the copies of `floats` parameters begin: at a multiple of 64 bytes.
std::size_t aligned_floats(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// Calls visit(index in [channels x positions x batch], index in [batch x positions x channels]).
template <class Visit>
void for_each_element(Tensor x, int channels, const Visit& visit) {
  const auto depth = static_cast<std::size_t>(channels), batch = static_cast<std::size_t>(x.batch);
  const std::size_t positions = static_cast<std::size_t>(x.features) / depth;
  for (std::size_t c = 0; c < depth; ++c)
    for (std::size_t p = 0; p < positions; ++p)
      for (std::size_t b = 0; b < batch; ++b) visit((c * positions + p) * batch + b, (b * positions + p) * depth + c);
}

/// Calls visit(index in [outputs x inputs x taps], index in [outputs x taps x inputs]).
template <class Visit>
void for_each_weight(std::size_t count, std::span<const int> shape, const Visit& visit) {
  const auto outputs = static_cast<std::size_t>(shape[0]), inputs = static_cast<std::size_t>(shape[1]);
  const std::size_t taps = count / outputs / inputs;
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t c = 0; c < inputs; ++c)
      for (std::size_t t = 0; t < taps; ++t) visit((o * inputs + c) * taps + t, (o * taps + t) * inputs + c);
}

}  // namespace

Buffer TensorOps::allocate(std::size_t bytes) {
  Buffer buffer = do_allocate(bytes);
  if (buffer.memory) {
    buffer.memory.get_deleter().count = memory_;
    memory_->add(buffer.bytes());
  }
  return buffer;
}

std::size_t TensorOps::parameter_bytes(std::size_t floats) const {
  if (element_type_ == ElementType::fp32) return floats * sizeof(float);
  return aligned_floats(floats) * sizeof(float) + floats * bytes_of(element_type_);
}

Buffer TensorOps::allocate_parameters(std::size_t floats) {
  Buffer buffer = allocate(parameter_bytes(floats));
  if (element_type_ != ElementType::fp32)
    buffer.memory.get_deleter().also = copies_.add(buffer.floats(), floats, buffer.floats() + aligned_floats(floats));
  return buffer;
}

void TensorOps::reserve_workspace(std::size_t bytes) {
  if (bytes <= workspace_.bytes()) return;
  timeline_.discard_step();  // a captured step may refer to the old memory
  workspace_ = {};
  workspace_ = allocate(bytes);
}

void TensorOps::read_rows(std::span<float> host, Tensor from, int channels) {
  assert(host.size() == from.size() && from.features % channels == 0);
  if (layout_ == MemoryLayout::batch_innermost) return read(host, from);
  std::vector<float> device(host.size());
  read(device, from);
  for_each_element(from, channels, [&](std::size_t row, std::size_t last) { host[row] = device[last]; });
}

void TensorOps::write_rows(Tensor to, std::span<const float> host, int channels) {
  assert(host.size() == to.size() && to.features % channels == 0);
  if (layout_ == MemoryLayout::batch_innermost) return write(to, host);
  std::vector<float> device(host.size());
  for_each_element(to, channels, [&](std::size_t row, std::size_t last) { device[last] = host[row]; });
  write(to, device);
}

void TensorOps::read_array(std::span<float> host, const float* from, std::span<const int> shape) {
  if (layout_ == MemoryLayout::batch_innermost || shape.size() < 3) return read(host, from);
  std::vector<float> device(host.size());
  read(device, from);
  for_each_weight(host.size(), shape, [&](std::size_t torch, std::size_t last) { host[torch] = device[last]; });
}

void TensorOps::write_array(float* to, std::span<const float> host, std::span<const int> shape) {
  if (layout_ == MemoryLayout::batch_innermost || shape.size() < 3) return write(to, host);
  std::vector<float> device(host.size());
  for_each_weight(host.size(), shape, [&](std::size_t torch, std::size_t last) { device[last] = host[torch]; });
  write(to, device);
}

}  // namespace ganymede::kernel
