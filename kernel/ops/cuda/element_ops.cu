// Element-wise operations, compiled for GPUs: of CudaOps what this header defines.

#include "kernel/ops/cuda/elements.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"

namespace ganymede::kernel::cuda {

template class CudaOps<GpuDevice, float>;
template class CudaOps<GpuDevice, Bf16>;

}  // namespace ganymede::kernel::cuda
