#pragma once
// Kernels that others measured, from CSV files in the columns of NeuSight's and DeepBench's published figures.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/kernels/kernel.hpp"

namespace ganymede::calibration {

struct MeasuredKernel {
  Kernel kernel;
  std::string gpu;        ///< as the file names it
  std::string set;        ///< one of measured_sets()
  double measured_s = 0;  ///< as published, with what the method of measuring adds
  std::string algorithm;  ///< that ran, if the file says so
  std::size_t line = 0;   ///< of the file
};

/// "conv3x3", "linear", "bmm", "elementwise" (NeuSight), "deepbench-conv" and "deepbench-gemm".
std::vector<std::string> measured_sets();

/// Reads a file whose columns tell which set it is. A row of deepbench-conv is up to three kernels. Rows that the file
/// flags as doubtful are left out. Throws a located ConfigError for columns of no set, a number that is none or not
/// positive, a GPU without a name, an operation that is unknown.
std::vector<MeasuredKernel> read_measured_kernels(const std::filesystem::path& file);
/// The same for text in memory; messages call it `name`.
std::vector<MeasuredKernel> parse_measured_kernels(std::string_view text, std::string name);

}  // namespace ganymede::calibration
