#include "kernel/layer.hpp"

#include <cassert>

namespace ganymede::kernel {

std::size_t ParameterSpec::size() const {
  std::size_t product = 1;
  for (const int extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

std::size_t padded(const std::vector<ParameterSpec>& specs) {
  std::size_t floats = 0;
  for (const auto& spec : specs) floats += padded(spec.size());
  return floats;
}

Tensor Layer::tangent(TensorOps&, Tensor) {
  assert(!"this layer has no tangent");
  return {};
}

Adjoints Layer::tangent_backward(TensorOps&, Adjoints, AdjointScratch, bool) {
  assert(!"this layer has no tangent");
  return {};
}

}  // namespace ganymede::kernel
