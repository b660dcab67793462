#pragma once
// The cost of tensor operations. The step trace carries these counts: on a GPU a small model is bound by kernel
// launches and by the host rather than by FLOPs.

#include <cstdint>

namespace ganymede::kernel {

/// Cost of operations. FLOPs are the same for every backend, and bytes for every one that stores the same type.
struct Work {
  double flops = 0;           ///< FLOPs of matrix products; a multiply-add is 2
  double bytes_read = 0;      ///< least traffic with device memory: each operand once
  double bytes_written = 0;   ///< each result once
  std::int64_t launches = 0;  ///< kernels that a GPU backend has launched; a library's call counts as one
  double seconds = 0;         ///< spent inside the operations; counted only after TensorOps::set_timed(true)

  Work& operator+=(const Work& other);
  friend Work operator-(Work a, const Work& b);
};

}  // namespace ganymede::kernel
