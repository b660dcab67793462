#include "kernel/device_limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

TEST(DeviceLimits, AreOfProductsOfRandomNumbersWideCopiesAndPinnedMemory) {
  const auto device = std::make_shared<HostDevice>(1);
  const auto backend = cuda::make_backend(device, {.graph = false});
  const traces::TraceDevice limits = measure_device(*backend);
  EXPECT_GT(limits.fp32.si, 0);
  EXPECT_EQ(device->products_of_zeros, 0);
  const auto& counts = device->counts;
  EXPECT_EQ(device->products_with_epilogues, 0);                                   // no bias is added,
  EXPECT_EQ(std::count(counts.begin(), counts.end(), std::size_t{256 * 256}), 0);  // by a product or after it
  EXPECT_GE(std::count(counts.begin(), counts.end(), std::size_t{1} << 18), 3);    // 1 << 20 floats, four at a time
  EXPECT_GT(measure_host_copy(*backend->ops).si, 0);  // HostDevice fails for pageable memory
}

TEST(Copies, AreRightWhateverTheirAlignment) {
  TestDevice device({"", [] { return make_hosted_cuda_backend({.graph = false}); }}, 4);
  float* const from = device.floats(40);
  float* const to = device.floats(40);
  for (const std::size_t first : {0, 1, 4})
    for (const std::size_t count : {1, 7, 8, 32}) {
      device.ops().copy(to + first, from + first, count);
      EXPECT_EQ(device.singles(to + first, count), device.singles(from + first, count)) << first << " " << count;
    }
}

}  // namespace
}  // namespace ganymede::kernel
