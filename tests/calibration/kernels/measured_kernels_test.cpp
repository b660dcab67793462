#include "calibration/kernels/measured_kernels.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/kernels/fit.hpp"
#include "calibration/kernels/measuring_method.hpp"
#include "common/errors.hpp"

namespace ganymede::calibration {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::string_view kAdditions =
    "gpu,op,rows,cols,time_us\n"
    "T4,add,4,1024,25.6\n"
    "T4,add,65536,1024,3300\n";

TEST(MeasuredKernels, AreReadByTheirColumns) {
  const auto additions = parse_measured_kernels(kAdditions, "mine.csv");
  ASSERT_EQ(additions.size(), 2u);
  EXPECT_EQ(additions[0].set, "elementwise");
  EXPECT_EQ(additions[1].kernel.rows, 65536);
  EXPECT_DOUBLE_EQ(additions[1].measured_s, 3300e-6);
  EXPECT_EQ(additions[1].line, 3u);

  const auto gradients = parse_measured_kernels(
      "gpu,precision,batch,in_ch,in_h,in_w,out_ch,k_h,k_w,pad_h,pad_w,stride_h,stride_w,fwd_us,dgrad_us,wgrad_us,"
      "fwd_algo\n"
      "P100,fp32,4,1,161,700,32,5,20,0,0,2,2,78,,127,implicit_gemm\n",
      "mine.csv");
  ASSERT_EQ(gradients.size(), 2u);  // the gradient to the input was not measured
  EXPECT_EQ(gradients[1].kernel.kind, KernelKind::kConvolutionWeightGradient);
}

TEST(MeasuredKernels, ErrorsAreLocated) {
  const auto refused = [](std::string_view text, const char* message) {
    EXPECT_THAT([&] { parse_measured_kernels(text, "mine.csv"); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  };
  refused("gpu,op,rows,cols,time\nT4,add,4,4,1\n", "mine.csv: line 1: found no column \"time_us\"");
  refused("gpu,op,rows,cols,time_us\nT4,add,4,4\n", "mine.csv: line 2");
  refused("gpu,op,rows,cols,time_us\nT4,add,0,4,1\n", "line 2: rows: found \"0\", expected an integer from 1");
  refused("gpu,op,rows,cols,time_us\nT4,add,4,4,25us\n", "line 2: time_us: found \"25us\"");
  refused("gpu,op,rows,cols,time_us\nT4,add,4,4,0\n", "line 2: time_us: found \"0\"");
  refused("gpu,op,rows,cols,time_us\nT4,add,4,4,1e300\n", "a time in microseconds above 0, at most 1e+09");
  refused("gpu,op,rows,cols,time_us\nT4,add,4000000000,4,5\n", "an integer from 1 to 2147483647");
  refused("gpu,op,rows,cols,time_us\nT4,fold,4,4,1\n", "line 2: op: found \"fold\", expected add");
  refused("gpu,precision,m,n,k,trans_a,trans_b,time_us\nT4,fp32,1,1,1,X,N,5\n", "line 2: trans_a: found \"X\"");
  refused("gpu,op,rows,cols,time_us\n,add,4,4,1\n", "line 2: gpu: found \"\"");
  const std::string no_text = std::string("gpu,op,rows,cols,time_us\nV100") + '\0' + ",add,4,4,1\n";
  refused(no_text, "line 2: gpu: found \"V100");
  refused("gpu,op,rows,cols,time_us\n", "mine.csv: line 2: found no measured kernel, expected rows");
  refused("gpu,op,rows,cols,time_us,flag\nT4,add,4,4,1,slow\n", "line 2: found no measured kernel without a flag");
}

TEST(MeasuringMethod, TheHostsFloorHidesShortKernels) {
  const auto rows = parse_measured_kernels(kAdditions, "mine.csv");
  const Parameters parameters = built_in_kernel_parameters();
  const MeasuringMethod method(parameters, rows);
  const KernelModel model(*find_gpu_sheet("T4"));
  EXPECT_DOUBLE_EQ(method.expected(model, rows[0]).central_s, method.floor_s(rows[0]));
  const double device = model.time(rows[1].kernel, MeasuringMethod::load(rows[1])).central_s;
  EXPECT_DOUBLE_EQ(method.expected(model, rows[1]).central_s, method.delay_s(rows[1]) + device);
  EXPECT_LT(method.delay_s(rows[1]), method.floor_s(rows[1]));
}

TEST(MeasuringMethod, TakesTheFloorOfAnUnknownHostFromTheFile) {
  std::string text = "gpu,op,rows,cols,time_us\n";
  for (int i = 1; i <= 40; ++i) text += fmt::format("L4,add,{},64,{}\n", i, 50 + 0.01 * i);
  const auto rows = parse_measured_kernels(text, "mine.csv");
  const MeasuringMethod method(built_in_kernel_parameters(), rows);
  EXPECT_NEAR(method.floor_s(rows[0]), 50e-6, 5e-6);
}

}  // namespace
}  // namespace ganymede::calibration
