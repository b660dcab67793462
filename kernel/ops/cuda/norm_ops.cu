// Batch norm and pixel norm, compiled for GPUs: of CudaOps what this header defines.

#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/norms.hpp"

namespace ganymede::kernel::cuda {

template class CudaOps<GpuDevice, float>;
template class CudaOps<GpuDevice, Bf16>;

}  // namespace ganymede::kernel::cuda
