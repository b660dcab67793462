// The GPU backend, compiled for GPUs: a module that the program loads when it is asked for (cuda_backend.cpp). The
// *_ops.cu beside it compile the operations, a few kinds in each.

#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/make_backend.hpp"

extern "C" ganymede::kernel::Backend* ganymede_make_cuda_backend(const ganymede::kernel::CudaOptions& options) {
  using namespace ganymede::kernel;
  return cuda::make_backend(std::make_shared<cuda::GpuDevice>(options), options).release();
}
