// The GPU backend over HostDevice.

#include <gtest/gtest.h>

#include "host_device.hpp"
#include "kernel/ops/cuda/every_op.hpp"

namespace ganymede::kernel {

std::unique_ptr<Backend> cuda::make_backend(std::shared_ptr<HostDevice> device, const CudaOptions& options) {
  return make_backend<HostDevice>(std::move(device), options);
}

std::unique_ptr<Backend> make_hosted_cuda_backend(CudaOptions options) {
  return cuda::make_backend(
      std::make_shared<HostDevice>(options.loads_a_step, options.precision.value_or(Precision::fp32)), options);
}

}  // namespace ganymede::kernel
