#include "calibration/kernels/kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"

namespace ganymede::calibration {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Kernel convolution(std::int64_t batch, std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t filter,
                   std::int64_t pad, std::int64_t stride) {
  Kernel c{.kind = KernelKind::kConvolution, .batch = batch, .in_channels = in, .in_h = size, .in_w = size};
  c.out_channels = out;
  c.kernel_h = c.kernel_w = filter;
  c.pad_h = c.pad_w = pad;
  c.stride_h = c.stride_w = stride;
  return c;
}

TEST(Kernel, HasTheOutputOfItsStrideAndPadding) {
  const Kernel c = convolution(1, 3, 64, 8, 4, 1, 2);
  EXPECT_EQ(c.out_h(), (64 + 2 * 1 - 4) / 2 + 1);
  EXPECT_EQ(c.out_d(), 1);
}

TEST(Kernel, CountsTwoOperationsAMultiplyAdd) {
  EXPECT_DOUBLE_EQ(direct_flops(convolution(2, 3, 64, 8, 4, 1, 2)), 2.0 * 2 * 32 * 32 * 8 * 3 * 4 * 4);
  const Kernel product{.kind = KernelKind::kBatchedProduct, .batch = 5, .m = 7, .n = 11, .k = 13};
  EXPECT_DOUBLE_EQ(direct_flops(product), 2.0 * 5 * 7 * 11 * 13);
  EXPECT_DOUBLE_EQ(operand_bytes(product), 4.0 * 5 * (7 * 13 + 13 * 11 + 7 * 11));
}

TEST(Kernel, RefusesShapesThatNoKernelHas) {
  const auto refused = [](const Kernel& kernel, const char* message) {
    EXPECT_THAT([&] { check_kernel(kernel, "conv1"); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  };
  refused(convolution(0, 3, 64, 8, 4, 1, 2), "conv1: batch: found 0, expected an integer from 1");
  refused(convolution(1, -3, 64, 8, 4, 1, 2), "conv1: in_channels: found -3");
  refused(convolution(1, 3, 2, 8, 4, 0, 1), "conv1: found an output of 1 x 0 x 0");
  refused(convolution(1 << 30, 1 << 20, 64, 8, 3, 1, 1), "conv1: found 4.61e+18 numbers in its input");
  refused({.kind = KernelKind::kProduct, .m = std::int64_t{1} << 31, .n = 1, .k = 1}, "conv1: m: found 2147483648");
  Kernel grouped = convolution(1, 4, 8, 6, 3, 1, 1);
  grouped.groups = 4;
  refused(grouped, "conv1: groups: found 4, expected a divisor of 4 and 6 channels");
  refused({.kind = KernelKind::kProduct, .m = 4, .n = 4}, "conv1: k: found 0");
  refused({.kind = KernelKind::kSoftmax, .rows = 4}, "conv1: cols: found 0");
}

}  // namespace
}  // namespace ganymede::calibration
