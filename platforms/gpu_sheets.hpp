#pragma once
// The facts about a GPU from its data sheet: what platforms and the model of kernels take from it.

#include <span>
#include <string>
#include <string_view>

namespace ganymede::platforms {

struct GpuSheet {
  std::string name;              ///< as in the catalogs, for example "A100-40GB"
  int capability = 0;            ///< CUDA compute capability times ten, 80 for an A100
  int multiprocessors = 0;       ///< those that are switched on
  int fp32_lanes = 64;           ///< multiply-adds of 32-bit numbers a cycle of one multiprocessor
  double clock_hz = 0;           ///< boost clock of the data sheet
  double l2_bytes = 0;           ///< second-level cache
  double memory_bandwidth = 0;   ///< bytes/s
  double tensor_fp16_flops = 0;  ///< dense, 32-bit sums, also for bfloat16; no tensor cores: 0
  double tensor_tf32_flops = 0;  ///< dense; 0 before compute capability 8.0
  double power_w = 0;            ///< limit of the board, or of this chip's part of it
  double memory_bytes = 0;       ///< of the smallest that is sold, if there are several
  bool stated = false;           ///< from a platform's figures, so that measurements of its name say nothing of it

  double fp32_flops() const { return 2.0 * multiprocessors * fp32_lanes * clock_hz; }
};

/// The sheet of a GPU by the name that catalogs or measurements use: makers' names, blanks, dashes and capitals do not
/// matter ("Tesla V100-SXM2 (DGX-1)" is "V100"). nullptr: not in the table, or a part of a GPU ("H100 MIG 1g.10gb").
const GpuSheet* find_gpu_sheet(std::string_view name);

std::span<const GpuSheet> gpu_sheets();  ///< all of them

}  // namespace ganymede::platforms
