// Losses, random numbers, codes and blocks of grids, compiled for GPUs: of CudaOps what these headers define.

#include "kernel/ops/cuda/blocks.hpp"
#include "kernel/ops/cuda/codes.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/losses.hpp"
#include "kernel/ops/cuda/random_ops.hpp"

namespace ganymede::kernel::cuda {

template class CudaOps<GpuDevice, float>;
template class CudaOps<GpuDevice, Bf16>;

}  // namespace ganymede::kernel::cuda
