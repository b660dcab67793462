// The model against a sample of the rows that it was fitted to, within the errors that the fit itself states.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "calibration/kernels/fit.hpp"
#include "common/embedded.hpp"
#include "common/json_value.hpp"
#include "support/when.hpp"

namespace ganymede::calibration {
namespace {

std::vector<MeasuredKernel> sample_rows() {
  std::vector<MeasuredKernel> rows;
  for (const auto& entry : std::filesystem::directory_iterator(GANYMEDE_SOURCE_DIR "/tests/calibration/kernels/sample"))
    if (entry.path().extension() == ".csv")
      for (MeasuredKernel& row : read_measured_kernels(entry.path())) rows.push_back(std::move(row));
  return rows;
}

struct Stated {
  double mean_error = 0, kernels = 1;
};

Stated stated_error(const std::string& kind) {
  const auto json = Json::parse(embedded_kernel_parameters().front().text);
  for (const auto& row : json["errors"]["shapes_left_out"])
    if (row["kind"] == kind && row["gpu"] == "all")
      return {row["mean_error"].get<double>(), row["kernels"].get<double>()};
  return {};
}

TEST(KernelSample, ErrorsAreThoseOfTheFit) {
  const Parameters parameters = built_in_kernel_parameters();
  std::size_t kinds = 0;
  const std::vector<MeasuredKernel> rows = sample_rows();
  const RowPredictor predictor(parameters, rows);
  for (const ErrorRow& row : errors_of(rows, predictor)) {
    if (row.gpu != "all" || row.kernels < 25) continue;
    ++kinds;
    // Both means are of samples, and errors of single kernels spread as far as their mean: four standard deviations of
    // the difference.
    const Stated stated = stated_error(row.kind);
    const double deviation = std::sqrt(1 / static_cast<double>(row.kernels) + 1 / stated.kernels);
    EXPECT_LT(row.mean_error, stated.mean_error * (1 + 4 * deviation)) << row.kind;
    EXPECT_GT(row.mean_error, stated.mean_error * (1 - 4 * deviation)) << row.kind;
  }
  EXPECT_GE(kinds, 10u);
}

TEST(KernelFit, ExplainsWhatItIsGiven) {
  std::vector<MeasuredKernel> rows;
  for (MeasuredKernel& row : sample_rows())
    if (row.set == "linear" || row.set == "bmm") rows.push_back(std::move(row));
  const auto mean_error = [&](const KernelParameters& parameters) {
    double sum = 0;
    const RowPredictor predictor(std::make_shared<const KernelParameters>(parameters), rows);
    for (const ErrorRow& row : errors_of(rows, predictor))
      if (row.gpu == "all") sum += row.mean_error;
    return sum / 2;
  };
  EXPECT_LT(mean_error(fitted(rows)), 0.85 * mean_error(KernelParameters()));
}

TEST(KernelFit, IgnoresAGpuThatItIsNotGiven) {
  NOT_SANITIZED("fits, as the test before does");
  std::vector<MeasuredKernel> rows = sample_rows();
  std::erase_if(rows, [](const MeasuredKernel& row) { return row.set != "elementwise" || row.gpu == "T4"; });
  const auto without = std::make_shared<const KernelParameters>(fitted(rows));
  EXPECT_FALSE(KernelModel(*find_gpu_sheet("T4"), without).measured());
  EXPECT_TRUE(KernelModel(*find_gpu_sheet("V100"), without).measured());
}

// Nine tenths of the rows that the intervals were not made from; here most rows are those.
TEST(KernelSample, IntervalsHoldWhatTheySay) {
  const std::vector<MeasuredKernel> rows = sample_rows();
  const RowPredictor predictor(built_in_kernel_parameters(), rows);
  for (const ErrorRow& row : errors_of(rows, predictor)) {
    if (row.gpu == "all" || row.kernels < 25) continue;
    const double deviation = std::sqrt(0.9 * 0.1 / static_cast<double>(row.kernels));
    EXPECT_GT(row.held, 0.85 - 4 * deviation) << row.kind << " " << row.gpu;
  }
}

// Chips that were left out tell how much chips differ: intervals for one that no fit saw are wider by that.
TEST(KernelFit, IntervalsOfAnUnseenChipHoldWhatChipsDiffer) {
  std::vector<MeasuredKernel> fast, slow;
  const KernelModel model(*find_gpu_sheet("T4"));
  for (int i = 0; i < 100; ++i) {
    MeasuredKernel row;
    row.kernel.kind = KernelKind::kProduct;
    row.kernel.m = row.kernel.n = row.kernel.k = 2048 + 128 * i;
    row.set = "deepbench-gemm", row.gpu = "T4";
    row.measured_s = 0.8 * model.time(row.kernel, Load::kBurst).central_s;
    fast.push_back(row);
    row.gpu = "V100";
    row.measured_s = 1.25 * KernelModel(*find_gpu_sheet("V100")).time(row.kernel, Load::kBurst).central_s;
    slow.push_back(row);
  }
  Leftovers leftovers;
  leftovers.add(built_in_kernel_parameters(), fast);
  leftovers.add(built_in_kernel_parameters(), slow);
  const double shift = std::sqrt(2) * std::log(1.25);  // standard deviation of two chips' medians
  const Spread unseen = leftovers.unseen()[static_cast<std::size_t>(Group::kProduct)][3];
  EXPECT_NEAR(unseen.high, std::hypot(std::log(1.25), 1.645 * shift), 0.01);
  EXPECT_NEAR(unseen.low, -std::hypot(std::log(1.25), 1.645 * shift), 0.01);
  const Spread known =
      leftovers.known(chip_key(*find_gpu_sheet("V100")), {})[static_cast<std::size_t>(Group::kProduct)][3];
  EXPECT_NEAR(known.high, std::log(1.25), 0.01);
}

}  // namespace
}  // namespace ganymede::calibration
