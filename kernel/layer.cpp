#include "kernel/layer.hpp"

namespace ganymede::kernel {

std::size_t ParameterSpec::size() const {
  std::size_t product = 1;
  for (const int extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

}  // namespace ganymede::kernel
