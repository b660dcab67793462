// The GPU backend, compiled for GPUs: a module that the program loads when it is asked for (cuda_backend.cpp).

#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"

extern "C" ganymede::kernel::Backend* ganymede_make_cuda_backend(const ganymede::kernel::CudaOptions& options) {
  using namespace ganymede::kernel;
  return cuda::make_backend(std::make_shared<cuda::GpuDevice>(options), options).release();
}
