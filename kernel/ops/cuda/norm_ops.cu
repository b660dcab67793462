// Norms and the absolute error, compiled for GPUs: of CudaOps what these headers define.

#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/norms.hpp"
#include "kernel/ops/cuda/translations.hpp"

namespace ganymede::kernel::cuda {

template class CudaOps<GpuDevice, float>;
template class CudaOps<GpuDevice, Bf16>;

}  // namespace ganymede::kernel::cuda
