// Fits the kernel model to the CSV files of a folder, prints its errors on shapes and GPUs that the fit did not see,
// and writes the parameters that the library is built with:
//
//   kernel_fit FOLDER [calibration/kernels/data/parameters.json]

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "calibration/kernels/fit.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::calibration {
namespace {

std::vector<MeasuredKernel> read_all(const std::filesystem::path& folder) {
  std::vector<MeasuredKernel> rows;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".csv") files.insert(entry.path());
  for (const auto& file : files)
    for (MeasuredKernel& row : read_measured_kernels(file)) rows.push_back(std::move(row));
  return rows;
}

void print(std::string_view title, const std::vector<ErrorRow>& errors) {
  fmt::print("\n{}\n", title);
  for (const ErrorRow& row : errors)
    fmt::print("  {:40} {:18} {:6}  {:5.1f} %  sums of 20 {:5.1f} %  held {:3.0f} %  median ratio {:.2f}\n", row.kind,
               row.gpu, row.kernels, 100 * row.mean_error, 100 * row.sum20_error, 100 * row.held, row.median_ratio);
}

/// The chip without its board: a GPU is left out together with its other boards.
std::string chip_name(const std::string& gpu) { return gpu.substr(0, gpu.find_first_of("- ")); }

/// Constant shares of the data sheet's rates, which the model replaces.
KernelTime constant_shares(const MeasuredKernel& row) {
  const GpuSheet& sheet = *find_gpu_sheet(row.gpu);
  const bool tensor = row.kernel.precision == KernelPrecision::kFp16 && sheet.tensor_fp16_flops > 0;
  const double rate = tensor ? sheet.tensor_fp16_flops : sheet.fp32_flops();
  KernelTime time;
  time.central_s =
      std::max(direct_flops(row.kernel) / (0.5 * rate), operand_bytes(row.kernel) / (0.83 * sheet.memory_bandwidth));
  time.low_s = 0.5 * time.central_s, time.high_s = 2 * time.central_s;
  return time;
}

struct Errors {
  std::vector<ErrorRow> shapes, gpus;
};

using Rows = std::vector<MeasuredKernel>;

void set_intervals(KernelParameters& parameters, const Leftovers& leftovers, const Spreads& left_out) {
  parameters.left_out = left_out;
  parameters.floor_spreads = leftovers.floor_spreads();
  for (auto& [name, chip] : parameters.chips) chip.known = leftovers.known(name, left_out);
}

/// Fits without a fifth of the shapes: errors and intervals for GPUs of the fit. The intervals that must hold a half of
/// these shapes are those of the other half.
Leftovers leave_shapes_out(const Rows& rows, const Spreads& left_out, Errors& errors) {
  const auto half_of = [](const MeasuredKernel& row) { return shape_hash(row.kernel) / 5 % 2; };
  Rows train, test, halves[2];
  for (const MeasuredKernel& row : rows) {
    const bool tested = shape_hash(row.kernel) % 5 == 0;
    (tested ? test : train).push_back(row);
    if (tested) halves[half_of(row)].push_back(row);
  }
  const auto without = std::make_shared<const KernelParameters>(fitted(train));
  Leftovers all;
  all.add(without, test);
  std::vector<RowPredictor> predictors;
  for (const Rows& other : {halves[1], halves[0]}) {
    Leftovers leftovers;
    leftovers.add(without, other);
    auto with_intervals = std::make_shared<KernelParameters>(*without);
    set_intervals(*with_intervals, leftovers, left_out);
    predictors.emplace_back(with_intervals, test);
  }
  errors.shapes = errors_of(test, [&](const MeasuredKernel& row) { return predictors[half_of(row)](row); });
  print("constant shares, on the same shapes", errors_of(test, constant_shares));
  print("shapes left out", errors.shapes);
  return all;
}

/// Fits without each chip in turn: errors and intervals for GPUs without measurements. The intervals that must hold a
/// chip's kernels are those of the other chips.
Spreads leave_gpus_out(const Rows& rows, Errors& errors) {
  std::map<std::string, Rows> by_chip;
  for (const MeasuredKernel& row : rows) by_chip[chip_name(row.gpu)].push_back(row);
  std::map<std::string, std::shared_ptr<KernelParameters>> without;
  for (const auto& [chip, left] : by_chip) {
    Rows others;
    for (const MeasuredKernel& row : rows)
      if (chip_name(row.gpu) != chip) others.push_back(row);
    without[chip] = std::make_shared<KernelParameters>(fitted(others));
  }
  const auto spreads_without = [&](const std::string& left_out) {
    Leftovers leftovers;
    for (const auto& [chip, left] : by_chip)
      if (chip != left_out) leftovers.add(without[chip], left);
    return leftovers.unseen();
  };
  for (const auto& [chip, left] : by_chip) {
    without[chip]->left_out = spreads_without(chip);
    const RowPredictor predictor(without[chip], left);
    for (const ErrorRow& row : errors_of(left, predictor))
      if (row.gpu != "all") errors.gpus.push_back(row);
  }
  print("GPUs left out", errors.gpus);
  return spreads_without("");
}

int fit(const std::filesystem::path& folder, const std::filesystem::path& output) {
  const std::vector<MeasuredKernel> rows = read_all(folder);
  Errors errors;
  const Spreads left_out = leave_gpus_out(rows, errors);
  const Leftovers leftovers = leave_shapes_out(rows, left_out, errors);
  if (output.empty()) return 0;
  KernelParameters parameters = fitted(rows);
  set_intervals(parameters, leftovers, left_out);
  write_file(output, parameters_json(parameters, errors.shapes, errors.gpus));
  return 0;
}

}  // namespace
}  // namespace ganymede::calibration

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) throw ganymede::ConfigError("usage: kernel_fit FOLDER [OUTPUT]");
  return ganymede::calibration::fit(argv[1], argc > 2 ? argv[2] : "");
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
