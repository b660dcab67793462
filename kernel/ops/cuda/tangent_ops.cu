// Tangents, the minibatch standard deviation and modulation, compiled for GPUs: of CudaOps what these headers define.

#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/minibatch_stddev.hpp"
#include "kernel/ops/cuda/modulation.hpp"
#include "kernel/ops/cuda/norm_tangents.hpp"

namespace ganymede::kernel::cuda {

template class CudaOps<GpuDevice, float>;
template class CudaOps<GpuDevice, Bf16>;

}  // namespace ganymede::kernel::cuda
