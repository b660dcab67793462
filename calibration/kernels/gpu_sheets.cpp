#include "calibration/kernels/gpu_sheets.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <vector>

#include "common/errors.hpp"

namespace ganymede::calibration {
namespace {

// Figures of NVIDIA's data sheets and architecture papers (Kepler GK110/210, Pascal, Volta, Turing, GA100, GA102, Ada,
// Hopper, Blackwell); a board of two chips (K80, M60) counts one of them, with half of its power. Rates of tensor cores
// are those of dense products with 32-bit sums. A10G: multiprocessors and clock as the driver reports them, because
// there is no data sheet. The V100's clock on PCIe is 1380 MHz, on SXM2 1530 MHz.
//
// Columns: name, capability, multiprocessors, lanes, clock in MHz, L2 in MiB, bandwidth in GB/s, tensor FP16 and TF32
// in TFLOP/s, power in W.
struct Row {
  const char* name;
  int capability, multiprocessors, lanes;
  double clock_mhz, l2_mib, bandwidth_gb, fp16_t, tf32_t, power_w;
};
constexpr std::array kRows = {
    Row{"K80", 37, 13, 192, 824, 1.5, 240, 0, 0, 150},
    Row{"M40", 52, 24, 128, 1112, 3, 288, 0, 0, 250},
    Row{"M60", 52, 16, 128, 1178, 2, 160, 0, 0, 150},
    Row{"P4", 61, 20, 128, 1063, 2, 192, 0, 0, 75},
    Row{"P40", 61, 30, 128, 1531, 3, 346, 0, 0, 250},
    Row{"P100", 60, 56, 64, 1329, 4, 732, 0, 0, 250},
    Row{"P100-SXM2", 60, 56, 64, 1480, 4, 732, 0, 0, 300},
    Row{"GTX1080", 61, 20, 128, 1733, 2, 320, 0, 0, 180},
    Row{"GTX1080Ti", 61, 28, 128, 1582, 2.75, 484.4, 0, 0, 250},
    Row{"TITANX", 61, 28, 128, 1531, 3, 480, 0, 0, 250},
    Row{"TITANXp", 61, 30, 128, 1582, 3, 547.6, 0, 0, 250},
    Row{"V100", 70, 80, 64, 1530, 6, 900, 125, 0, 300},
    Row{"V100-PCIE", 70, 80, 64, 1380, 6, 897, 112, 0, 250},
    Row{"TITANV", 70, 80, 64, 1455, 4.5, 652.8, 119, 0, 250},
    Row{"T4", 75, 40, 64, 1590, 4, 320, 65, 0, 70},
    Row{"RTX2060", 75, 30, 64, 1680, 3, 336, 25.8, 0, 160},
    Row{"RTX2070", 75, 36, 64, 1620, 4, 448, 29.9, 0, 175},
    Row{"RTX2080Ti", 75, 68, 64, 1545, 5.5, 616, 53.8, 0, 250},
    Row{"RTX6000", 75, 72, 64, 1770, 6, 672, 130.5, 0, 260},  // Quadro; the later one is RTX6000Ada
    Row{"TITANRTX", 75, 72, 64, 1770, 6, 672, 130.5, 0, 280},
    Row{"A100-40GB", 80, 108, 64, 1410, 40, 1555, 312, 156, 400},
    Row{"A100-40GB-PCIE", 80, 108, 64, 1410, 40, 1555, 312, 156, 250},
    Row{"A100-80GB", 80, 108, 64, 1410, 40, 2039, 312, 156, 400},
    Row{"A100-80GB-PCIE", 80, 108, 64, 1410, 40, 1935, 312, 156, 300},
    Row{"A10", 86, 72, 128, 1695, 6, 600, 125, 62.5, 150},
    Row{"A10G", 86, 80, 128, 1539, 6, 600.2, 70, 35, 300},
    Row{"A40", 86, 84, 128, 1740, 6, 696, 149.7, 74.8, 300},
    Row{"RTXA5000", 86, 64, 128, 1695, 6, 768, 111.1, 55.6, 230},
    Row{"RTXA6000", 86, 84, 128, 1800, 6, 768, 154.8, 77.4, 300},
    Row{"RTX3060", 86, 28, 128, 1777, 3, 360, 25.5, 12.7, 170},
    Row{"RTX3060Ti", 86, 38, 128, 1665, 4, 448, 32.4, 16.2, 200},
    Row{"RTX3070", 86, 46, 128, 1725, 4, 448, 40.6, 20.3, 220},
    Row{"RTX3080", 86, 68, 128, 1710, 5, 760, 59.5, 29.8, 320},
    Row{"RTX3080Ti", 86, 80, 128, 1665, 6, 912, 68.2, 34.1, 350},
    Row{"RTX3090", 86, 82, 128, 1695, 6, 936, 71, 35.6, 350},
    Row{"L4", 89, 58, 128, 2040, 48, 300, 121, 60, 72},
    Row{"L40", 89, 142, 128, 2490, 96, 864, 181, 90.5, 300},
    Row{"L40S", 89, 142, 128, 2520, 96, 864, 362, 183, 350},
    Row{"RTX4060", 89, 24, 128, 2460, 24, 272, 30.2, 15.1, 115},
    Row{"RTX4070", 89, 46, 128, 2475, 36, 504.2, 58.3, 29.1, 200},
    Row{"RTX4080", 89, 76, 128, 2505, 64, 716.8, 97.5, 48.7, 320},
    Row{"RTX4090", 89, 128, 128, 2520, 72, 1008, 165.2, 82.6, 450},
    Row{"RTX6000Ada", 89, 142, 128, 2505, 96, 960, 364, 182, 300},
    Row{"H100", 90, 132, 128, 1980, 50, 3350, 990, 495, 700},
    Row{"H100-PCIE", 90, 114, 128, 1755, 50, 2039, 756, 378, 350},
    Row{"H100-NVL", 90, 132, 128, 1785, 50, 3900, 835, 417, 400},
    Row{"H200", 90, 132, 128, 1980, 50, 4800, 990, 495, 700},
    Row{"GH200", 90, 132, 128, 1980, 50, 4000, 990, 495, 700},
    Row{"B200", 100, 148, 128, 1965, 126, 7700, 2250, 1125, 1000},
    Row{"GB200", 100, 148, 128, 2062, 126, 8000, 2500, 1250, 1200},
    Row{"RTX5090", 120, 170, 128, 2407, 96, 1792, 209.5, 104.8, 575},
};

// Names of catalogs, measurements and drivers that are not those of the rows, as sheet_key() writes them.
constexpr std::array kOtherNames = {
    std::pair{"P100PCIE", "P100"},
    std::pair{"V100SXM2", "V100"},
    std::pair{"V100SXM3", "V100"},
    std::pair{"A100PCIE40GB", "A100-40GB-PCIE"},
    std::pair{"A100PCIE80GB", "A100-80GB-PCIE"},
    std::pair{"A100PCIE", "A100-40GB-PCIE"},
    std::pair{"A10080GBPCIE", "A100-80GB-PCIE"},
    std::pair{"A100SXM480GB", "A100-80GB"},
    std::pair{"A100SXM80GB", "A100-80GB"},
    std::pair{"A100", "A100-40GB"},
    std::pair{"A6000", "RTXA6000"},
    std::pair{"A5000", "RTXA5000"},
    std::pair{"TITANXPASCAL", "TITANX"},
    std::pair{"H100SXM", "H100"},
};

std::string sheet_key(std::string_view name) {
  std::string key;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"NVIDIA", "TESLA", "GEFORCE", "QUADRO"})
    if (key.starts_with(maker)) key.erase(0, maker.size());
  return key;
}

GpuSheet sheet_of(const Row& row) {
  return {row.name,
          row.capability,
          row.multiprocessors,
          row.lanes,
          row.clock_mhz * 1e6,
          row.l2_mib * 1024 * 1024,
          row.bandwidth_gb * 1e9,
          row.fp16_t * 1e12,
          row.tf32_t * 1e12,
          row.power_w};
}

const std::vector<GpuSheet>& sheets() {
  static const std::vector<GpuSheet> all = [] {
    std::vector<GpuSheet> made;
    for (const Row& row : kRows) made.push_back(sheet_of(row));
    return made;
  }();
  return all;
}

/// True if the letters or digits that follow `prefix` in `key` only say more of the same GPU: P100 is no P1, A100 no
/// A10, and T4004GB no T4, but V10032GB is a V100. Memories have 8 to 999 GB.
bool names_the_same(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return false;
  const std::string_view rest = key.substr(prefix.size());
  for (const std::string_view more : {"PCIE", "SXM", "HBM", "NVL", "DGX", "GB", "KT", "GENERATION"})
    if (rest.starts_with(more)) return true;
  std::size_t digits = 0;
  while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
  const bool is_memory = (digits == 1 && rest[0] >= '8') || ((digits == 2 || digits == 3) && rest[0] != '0');
  return rest.empty() || (is_memory && rest.substr(digits).starts_with("GB"));
}

}  // namespace

std::span<const GpuSheet> gpu_sheets() { return sheets(); }

const GpuSheet* find_gpu_sheet(std::string_view name) {
  const std::string key = sheet_key(name);
  // People leave out the series: a "3090" is an RTX 3090, a "1080 Ti" a GTX 1080 Ti.
  if (!key.empty() && std::isdigit(static_cast<unsigned char>(key.front())))
    for (const char* series : {"RTX", "GTX"})
      if (const GpuSheet* found = find_gpu_sheet(series + key)) return found;
  if (key.find("MIG") != std::string::npos) return nullptr;  // an instance has a part of the GPU's multiprocessors
  const GpuSheet* found = nullptr;
  std::size_t longest = 0;
  const auto consider = [&](std::string_view candidate, std::string_view sheet) {
    const std::string prefix = sheet_key(candidate);
    if (prefix.size() <= longest || !names_the_same(key, prefix)) return;
    for (const GpuSheet& each : sheets())
      if (each.name == sheet) found = &each, longest = prefix.size();
  };
  for (const GpuSheet& sheet : sheets()) consider(sheet.name, sheet.name);
  for (const auto& [other, sheet] : kOtherNames) consider(other, sheet);
  return found;
}

void check_gpu_sheet(const GpuSheet& sheet, std::string_view where) {
  const auto need = [&](std::string_view field, double value) {
    if (!(value > 0))
      throw ConfigError(fmt::format("{}: {}: found {}, expected a number above 0", where, field, value));
  };
  need("multiprocessors", sheet.multiprocessors);
  need("fp32_lanes", sheet.fp32_lanes);
  need("clock_hz", sheet.clock_hz);
  need("memory_bandwidth", sheet.memory_bandwidth);
  need("l2_bytes", sheet.l2_bytes);
}

}  // namespace ganymede::calibration
