// The operations of the GPU backend, compiled for GPUs.

#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/gpu_machine.hpp"

extern "C" ganymede::kernel::Ops* ganymede_make_cuda_ops(const ganymede::kernel::CudaOptions& options) {
  using namespace ganymede::kernel;
  return new cuda::CudaOps<cuda::GpuMachine>(std::make_unique<cuda::GpuMachine>(options), options);
}
