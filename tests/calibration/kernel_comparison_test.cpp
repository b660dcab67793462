#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/kernel_tables.hpp"
#include "calibration/kernels/kernel_model.hpp"
#include "calibration/kernels/measuring_method.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "support/errors.hpp"

namespace ganymede::calibration {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Large products on a GPU, measured as `factor` times what the model expects.
std::vector<MeasuredKernel> products(const std::string& gpu, std::size_t count, double factor) {
  const KernelModel model(*find_gpu_sheet(gpu));
  std::vector<MeasuredKernel> all;
  for (std::size_t i = 0; i < count; ++i) {
    MeasuredKernel row;
    row.kernel.kind = KernelKind::kProduct;
    row.kernel.m = row.kernel.n = row.kernel.k = 2048 + 128 * static_cast<std::int64_t>(i);
    row.gpu = gpu, row.set = "deepbench-gemm", row.line = i + 2;
    row.measured_s = factor * MeasuringMethod(built_in_kernel_parameters(), {}).expected(model, row).central_s;
    all.push_back(std::move(row));
  }
  return all;
}

TEST(KernelComparison, IsExactForWhatTheModelSays) {
  const std::vector<KernelErrors> errors = compare(products("V100", 30, 1));
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].kind, "product");
  EXPECT_EQ(errors[0].gpu, "V100");
  EXPECT_EQ(errors[0].kernels, 30U);
  EXPECT_NEAR(errors[0].mean_error, 0, 1e-9);
  EXPECT_NEAR(errors[0].sum20_error, 0, 1e-9);
  EXPECT_NEAR(errors[0].held, 1, 1e-9);
}

// Half of the kernels take twice as long as predicted, half as long: |1/2 - 1| and |2 - 1| are 0.75 on average. In a
// sum the errors partly cancel.
TEST(KernelComparison, SumsOf20CancelSomeOfTheErrors) {
  std::vector<MeasuredKernel> rows = products("V100", 40, 2), fast = products("V100", 40, 0.5);
  rows.insert(rows.end(), fast.begin(), fast.end());
  const KernelErrors errors = compare(rows)[0];
  EXPECT_NEAR(errors.mean_error, 0.75, 1e-6);
  EXPECT_LT(errors.sum20_error, 0.4);
  EXPECT_GT(errors.sum20_error, 0.1);
  EXPECT_LT(errors.held, 0.6);
}

TEST(KernelComparison, HasAnEntryForEachKindAndGpu) {
  std::vector<MeasuredKernel> rows = products("V100", 3, 1), more = products("T4", 5, 1);
  rows.insert(rows.end(), more.begin(), more.end());
  rows[0].kernel.kind = KernelKind::kBatchedProduct;
  const std::vector<KernelErrors> errors = compare(rows);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].gpu + errors[1].gpu + errors[2].gpu, "T4V100V100");
  EXPECT_EQ(errors[2].kind, "batched-product");
}

TEST(KernelComparison, NamesAGpuWithoutADataSheet) {
  std::vector<MeasuredKernel> rows = products("V100", 2, 1);
  rows[1].gpu = "GPU-Y";
  rows[1].kernel.name = "m.csv: line 3";
  EXPECT_THAT(message_of<ConfigError>([&] { compare(rows); }),
              AllOf(HasSubstr("m.csv: line 3: gpu: found \"GPU-Y\""), HasSubstr("`ganymede list gpus`")));
}

TEST(KernelComparison, OfOneGpuIsFoundByItsNameOrItsSheet) {
  std::vector<MeasuredKernel> rows = products("V100", 3, 1), more = products("T4", 5, 1);
  rows.insert(rows.end(), more.begin(), more.end());
  EXPECT_EQ(kernels_on_gpu(rows, "T4", "m.csv").size(), 5U);
  EXPECT_THAT(message_of<ConfigError>([&] { kernels_on_gpu(rows, "A100", "m.csv"); }),
              AllOf(HasSubstr("--gpu A100: m.csv has no kernel of it"), HasSubstr("V100")));
}

TEST(KernelComparison, IsATableAndADocument) {
  const std::vector<KernelErrors> errors = compare(products("V100", 3, 1));
  EXPECT_THAT(to_table(errors, 100), AllOf(HasSubstr("0.0 % (of 3)"), HasSubstr("V100")));
  EXPECT_THAT(to_csv(errors), HasSubstr("product,V100,3,0.000000"));
  EXPECT_EQ(to_json(errors).at("kinds").at(0).at("kernels"), 3);
}

}  // namespace
}  // namespace ganymede::calibration
