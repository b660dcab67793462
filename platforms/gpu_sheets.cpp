#include "platforms/gpu_sheets.hpp"

#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace ganymede::platforms {
namespace {

// Figures of NVIDIA's data sheets and architecture papers (Kepler GK110/210, Pascal, Volta, Turing, GA100, GA102, Ada,
// Hopper, Blackwell) and AMD's of the Instinct MI300X to MI355X; a board of several chips (K80, M60, A16) counts
// one of them, with its part of the power. Rates of tensor cores are those of dense products with 32-bit sums. A10G:
// multiprocessors and clock as the driver reports them, because there is no data sheet. The V100's clock on PCIe is
// 1380 MHz, on SXM2 1530 MHz.
//
// Columns: name, capability, multiprocessors, lanes, clock in MHz, L2 in MiB, bandwidth in GB/s, tensor FP16 and TF32
// in TFLOP/s, power in W, memory in GiB.
struct Row {
  const char* name;
  int capability, multiprocessors, lanes;
  double clock_mhz, l2_mib, bandwidth_gb, fp16_t, tf32_t, power_w, memory_gib;
};
constexpr std::array kRows = {
    Row{"K80", 37, 13, 192, 824, 1.5, 240, 0, 0, 150, 12},
    Row{"M40", 52, 24, 128, 1112, 3, 288, 0, 0, 250, 12},
    Row{"M60", 52, 16, 128, 1178, 2, 160, 0, 0, 150, 8},
    Row{"P4", 61, 20, 128, 1063, 2, 192, 0, 0, 75, 8},
    Row{"P40", 61, 30, 128, 1531, 3, 346, 0, 0, 250, 24},
    Row{"P100", 60, 56, 64, 1329, 4, 732, 0, 0, 250, 16},
    Row{"P100-SXM2", 60, 56, 64, 1480, 4, 732, 0, 0, 300, 16},
    Row{"M4000", 52, 13, 128, 773, 2, 192, 0, 0, 120, 8},   // Quadro
    Row{"P4000", 61, 14, 128, 1480, 2, 243, 0, 0, 105, 8},  // Quadro
    Row{"P5000", 61, 20, 128, 1733, 2, 288, 0, 0, 180, 16},
    Row{"P6000", 61, 30, 128, 1645, 3, 432, 0, 0, 250, 24},
    Row{"GTX1080", 61, 20, 128, 1733, 2, 320, 0, 0, 180, 8},
    Row{"GTX1080Ti", 61, 28, 128, 1582, 2.75, 484.4, 0, 0, 250, 11},
    Row{"TITANX", 61, 28, 128, 1531, 3, 480, 0, 0, 250, 12},
    Row{"TITANXp", 61, 30, 128, 1582, 3, 547.6, 0, 0, 250, 12},
    Row{"V100", 70, 80, 64, 1530, 6, 900, 125, 0, 300, 16},
    Row{"V100-PCIE", 70, 80, 64, 1380, 6, 897, 112, 0, 250, 16},
    Row{"TITANV", 70, 80, 64, 1455, 4.5, 652.8, 119, 0, 250, 12},
    Row{"T4", 75, 40, 64, 1590, 4, 320, 65, 0, 70, 16},
    Row{"RTX2060", 75, 30, 64, 1680, 3, 336, 25.8, 0, 160, 6},
    Row{"RTX2070", 75, 36, 64, 1620, 4, 448, 29.9, 0, 175, 8},
    Row{"RTX2080Ti", 75, 68, 64, 1545, 5.5, 616, 53.8, 0, 250, 11},
    Row{"GTX1660S", 75, 22, 64, 1785, 1.5, 336, 0, 0, 125, 6},
    Row{"RTX6000", 75, 72, 64, 1770, 6, 672, 130.5, 0, 260, 24},  // Quadro; the later one is RTX6000Ada
    Row{"RTX4000", 75, 36, 64, 1545, 4, 416, 57, 0, 160, 8},      // Quadro
    Row{"RTX5000", 75, 48, 64, 1815, 4, 448, 89.2, 0, 230, 16},   // Quadro
    Row{"TITANRTX", 75, 72, 64, 1770, 6, 672, 130.5, 0, 280, 24},
    Row{"A100-40GB", 80, 108, 64, 1410, 40, 1555, 312, 156, 400, 40},
    Row{"A100-40GB-PCIE", 80, 108, 64, 1410, 40, 1555, 312, 156, 250, 40},
    Row{"A100-80GB", 80, 108, 64, 1410, 40, 2039, 312, 156, 400, 80},
    Row{"A100-80GB-PCIE", 80, 108, 64, 1410, 40, 1935, 312, 156, 300, 80},
    Row{"A800", 80, 108, 64, 1410, 40, 2039, 312, 156, 400, 80},  // an A100 with fewer NVLinks
    Row{"A30", 80, 56, 64, 1440, 24, 933, 165, 82, 165, 24},
    Row{"A10", 86, 72, 128, 1695, 6, 600, 125, 62.5, 150, 24},
    Row{"A10G", 86, 80, 128, 1539, 6, 600.2, 70, 35, 300, 24},
    Row{"A2", 86, 10, 128, 1770, 2, 200, 18.1, 9.1, 60, 16},
    Row{"A16", 86, 10, 128, 1695, 2, 231.9, 17.4, 8.7, 62.5, 16},
    Row{"A40", 86, 84, 128, 1740, 6, 696, 149.7, 74.8, 300, 48},
    Row{"RTXA2000", 86, 26, 128, 1200, 3, 288, 31.9, 16, 70, 6},
    Row{"RTXA4000", 86, 48, 128, 1560, 4, 448, 76.7, 38.3, 140, 16},
    Row{"RTXA4500", 86, 56, 128, 1650, 6, 640, 94.6, 47.3, 200, 20},
    Row{"RTXA5000", 86, 64, 128, 1695, 6, 768, 111.1, 55.6, 230, 24},
    Row{"RTXA6000", 86, 84, 128, 1800, 6, 768, 154.8, 77.4, 300, 48},
    Row{"RTX3060", 86, 28, 128, 1777, 3, 360, 25.5, 12.7, 170, 12},
    Row{"RTX3060Ti", 86, 38, 128, 1665, 4, 448, 32.4, 16.2, 200, 8},
    Row{"RTX3070", 86, 46, 128, 1725, 4, 448, 40.6, 20.3, 220, 8},
    Row{"RTX3070Ti", 86, 48, 128, 1770, 4, 608, 43.5, 21.7, 290, 8},
    Row{"RTX3080", 86, 68, 128, 1710, 5, 760, 59.5, 29.8, 320, 10},
    Row{"RTX3080Ti", 86, 80, 128, 1665, 6, 912, 68.2, 34.1, 350, 12},
    Row{"RTX3090", 86, 82, 128, 1695, 6, 936, 71, 35.6, 350, 24},
    Row{"L4", 89, 58, 128, 2040, 48, 300, 121, 60, 72, 24},
    Row{"L40", 89, 142, 128, 2490, 96, 864, 181, 90.5, 300, 48},
    Row{"L40S", 89, 142, 128, 2520, 96, 864, 362, 183, 350, 48},
    Row{"RTX4060", 89, 24, 128, 2460, 24, 272, 30.2, 15.1, 115, 8},
    Row{"RTX4060Ti", 89, 34, 128, 2535, 32, 288, 44.1, 22.1, 160, 8},
    Row{"RTX4070", 89, 46, 128, 2475, 36, 504.2, 58.3, 29.1, 200, 12},
    Row{"RTX4070Ti", 89, 60, 128, 2610, 48, 504.2, 80.2, 40.1, 285, 12},
    Row{"RTX4080", 89, 76, 128, 2505, 64, 716.8, 97.5, 48.7, 320, 16},
    Row{"RTX4080S", 89, 80, 128, 2550, 64, 736.3, 104.4, 52.2, 320, 16},
    Row{"RTX4090", 89, 128, 128, 2520, 72, 1008, 165.2, 82.6, 450, 24},
    Row{"RTX2000Ada", 89, 22, 128, 2130, 12, 224, 48, 24, 70, 16},
    Row{"RTX4000Ada", 89, 48, 128, 2175, 48, 360, 106.9, 53.4, 130, 20},
    Row{"RTX5000Ada", 89, 100, 128, 2550, 72, 576, 261.1, 130.6, 250, 32},
    Row{"RTX6000Ada", 89, 142, 128, 2505, 96, 960, 364, 182, 300, 48},
    Row{"H100", 90, 132, 128, 1980, 50, 3350, 990, 495, 700, 80},
    Row{"H100-PCIE", 90, 114, 128, 1755, 50, 2039, 756, 378, 350, 80},
    Row{"H100-NVL", 90, 132, 128, 1785, 50, 3900, 835, 417, 400, 94},
    Row{"H800", 90, 132, 128, 1980, 50, 3350, 990, 495, 700, 80},  // an H100 with fewer NVLinks
    Row{"H20", 90, 78, 128, 1980, 60, 4000, 148, 74, 400, 96},
    Row{"H200", 90, 132, 128, 1980, 50, 4800, 990, 495, 700, 141},
    Row{"GH200", 90, 132, 128, 1980, 50, 4000, 990, 495, 700, 96},
    Row{"B200", 100, 148, 128, 1965, 126, 7700, 2250, 1125, 1000, 179},
    Row{"GB200", 100, 148, 128, 2062, 126, 8000, 2500, 1250, 1200, 185},
    Row{"B300", 103, 160, 128, 1890, 126, 8000, 2250, 1125, 1100, 270},
    Row{"GB300", 103, 160, 128, 1950, 126, 8000, 2500, 1250, 1400, 278},
    Row{"RTXPRO6000", 120, 188, 128, 2490, 128, 1597, 480, 240, 600, 96},  // of servers
    Row{"RTX5060", 120, 30, 128, 2497, 32, 448, 38.4, 19.2, 145, 8},
    Row{"RTX5060Ti", 120, 36, 128, 2572, 32, 448, 47.4, 23.7, 180, 8},
    Row{"RTX5070", 120, 48, 128, 2512, 48, 672, 61.7, 30.9, 250, 12},
    Row{"RTX5070Ti", 120, 70, 128, 2452, 48, 896, 87.9, 43.9, 300, 16},
    Row{"RTX5080", 120, 84, 128, 2617, 64, 960, 112.6, 56.3, 360, 16},
    Row{"RTX5090", 120, 170, 128, 2407, 96, 1792, 209.5, 104.8, 575, 32},
    // AMD's GCN 5 and RDNA, taken for Pascals of these figures, and its CDNA 3 and 4, for Hoppers: their units count as
    // multiprocessors and their last cache is the Infinity Cache. No kernel was measured on any of them.
    Row{"MI25", 60, 64, 64, 1500, 4, 484, 0, 0, 300, 16},
    Row{"V520", 60, 36, 64, 1600, 4, 512, 0, 0, 225, 8},  // Radeon Pro
    Row{"MI300X", 90, 304, 128, 2100, 256, 5300, 1307.4, 653.7, 750, 192},
    Row{"MI325X", 90, 304, 128, 2100, 256, 6000, 1307.4, 653.7, 1000, 256},
    Row{"MI355X", 90, 256, 128, 2400, 256, 8000, 2516.6, 0, 1400, 288},
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
    std::pair{"A2000", "RTXA2000"},
    std::pair{"A4000", "RTXA4000"},
    std::pair{"A4500", "RTXA4500"},
    std::pair{"RTXPRO6000WS", "RTXPRO6000"},
    std::pair{"RTXPRO6000WK", "RTXPRO6000"},
    std::pair{"RTXPRO6000S", "RTXPRO6000"},
    std::pair{"RTX4080SUPER", "RTX4080S"},
    std::pair{"T4G", "T4"},
    std::pair{"H100MEGA", "H100"},
    std::pair{"MI300", "MI300X"},
    std::pair{"RADEONMI25", "MI25"},
    std::pair{"RADEONINSTINCTMI25", "MI25"},
    std::pair{"RADEONPROV520", "V520"},
};

std::string sheet_key(std::string_view name) {
  std::string key;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"NVIDIA", "AMD", "INSTINCT", "TESLA", "GEFORCE", "QUADRO"})
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
          row.power_w,
          row.memory_gib * 1024 * 1024 * 1024};
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
  for (const std::string_view more : {"PCIE", "SXM", "HBM", "NVL", "DGX", "GB", "KT", "GENERATION", "BLACKWELL"})
    if (rest.starts_with(more)) return true;
  std::size_t digits = 0;
  while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits]))) ++digits;
  const bool is_memory = (digits == 1 && rest[0] >= '8') || ((digits == 2 || digits == 3) && rest[0] != '0');
  return rest.empty() || (is_memory && rest.substr(digits).starts_with("G"));
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
  static const auto kNames = [] {
    std::vector<std::pair<std::string, const GpuSheet*>> names;
    for (const GpuSheet& sheet : sheets()) {
      names.emplace_back(sheet_key(sheet.name), &sheet);
      for (const auto& [other, of] : kOtherNames)
        if (of == sheet.name) names.emplace_back(sheet_key(other), &sheet);
    }
    return names;
  }();
  const GpuSheet* found = nullptr;
  std::size_t longest = 0;
  for (const auto& [name_key, sheet] : kNames)
    if (name_key.size() > longest && names_the_same(key, name_key)) found = sheet, longest = name_key.size();
  return found;
}

}  // namespace ganymede::platforms
