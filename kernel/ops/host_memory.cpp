// The first virtual function of TensorOps that is not inline: its file holds the type's information, so that the GPU
// module, which derives from TensorOps, compiles it too.

#include <cstdlib>

#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

Buffer TensorOps::allocate_host(std::size_t bytes) {
  return {{std::calloc(bytes, 1), {[](void* data, std::size_t) { std::free(data); }, bytes, nullptr}}};
}

}  // namespace ganymede::kernel
