#include "platforms/gpu_sheets.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/embedded.hpp"

namespace ganymede::platforms {
namespace {

std::string sheet_key(std::string_view name) {
  std::string key;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"NVIDIA", "AMD", "INSTINCT", "TESLA", "GEFORCE", "QUADRO"})
    if (key.starts_with(maker)) key.erase(0, maker.size());
  return key;
}

/// The rows of gpu_sheets.csv: figures of NVIDIA's data sheets and architecture papers (Kepler GK110/210, Pascal,
/// Volta, Turing, GA100, GA102, Ada, Hopper, Blackwell) and AMD's of the Instinct MI300X to MI355X. A board of several
/// chips (K80, M60, A16) counts one of them, with its part of the power. Rates of tensor cores are those of dense
/// products with 32-bit sums. A10G: multiprocessors and clock as the driver reports them, because there is no data
/// sheet. The V100's clock on PCIe is 1380 MHz, on SXM2 1530 MHz. AMD's GCN 5 and RDNA are taken for Pascals of these
/// figures, and its CDNA 3 and 4 for Hoppers: their units count as multiprocessors and their last cache is the Infinity
/// Cache; no kernel was measured on any of them.
class SheetTable {
 public:
  SheetTable() : table_(CsvTable::parse(embedded_gpu_sheets().front().text, "platforms/gpu_sheets.csv")) {
    for (const CsvTable::Row& row : table_.rows()) sheets_.push_back(sheet_of(row));
    for (std::size_t i = 0; i < sheets_.size(); ++i) {
      names_.emplace_back(sheet_key(sheets_[i].name), &sheets_[i]);
      std::istringstream others(table_.at(table_.rows()[i], "other_names"));
      for (std::string other; others >> other;) names_.emplace_back(other, &sheets_[i]);
    }
  }

  const std::vector<GpuSheet>& sheets() const { return sheets_; }
  /// The sheets by their own and their other names, as sheet_key() writes them.
  const std::vector<std::pair<std::string, const GpuSheet*>>& names() const { return names_; }

 private:
  GpuSheet sheet_of(const CsvTable::Row& row) const {
    const auto number = [&](std::string_view column) {
      const std::string& cell = table_.at(row, column);
      double value = 0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc() || end != cell.data() + cell.size())
        table_.fail(row, column, fmt::format("found \"{}\", expected a number", cell));
      return value;
    };
    const auto count = [&](std::string_view column) { return static_cast<int>(number(column)); };
    constexpr double kMiB = 1024 * 1024;
    return {.name = table_.at(row, "name"),
            .capability = count("capability"),
            .multiprocessors = count("multiprocessors"),
            .fp32_lanes = count("lanes"),
            .clock_hz = number("clock_mhz") * 1e6,
            .l2_bytes = number("l2_mib") * kMiB,
            .memory_bandwidth = number("bandwidth_gb") * 1e9,
            .tensor_fp16_flops = number("fp16_tflops") * 1e12,
            .tensor_tf32_flops = number("tf32_tflops") * 1e12,
            .power_w = number("power_w"),
            .memory_bytes = number("memory_gib") * 1024 * kMiB};
  }

  CsvTable table_;
  std::vector<GpuSheet> sheets_;
  std::vector<std::pair<std::string, const GpuSheet*>> names_;
};

const SheetTable& table() {
  static const SheetTable read;
  return read;
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

std::span<const GpuSheet> gpu_sheets() { return table().sheets(); }

const GpuSheet* find_gpu_sheet(std::string_view name) {
  const std::string key = sheet_key(name);
  // People leave out the series: a "3090" is an RTX 3090, a "1080 Ti" a GTX 1080 Ti.
  if (!key.empty() && std::isdigit(static_cast<unsigned char>(key.front())))
    for (const char* series : {"RTX", "GTX"})
      if (const GpuSheet* found = find_gpu_sheet(series + key)) return found;
  if (key.find("MIG") != std::string::npos) return nullptr;  // an instance has a part of the GPU's multiprocessors
  const GpuSheet* found = nullptr;
  std::size_t longest = 0;
  for (const auto& [name_key, sheet] : table().names())
    if (name_key.size() > longest && names_the_same(key, name_key)) found = sheet, longest = name_key.size();
  return found;
}

}  // namespace ganymede::platforms
