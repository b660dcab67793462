#include "platforms/gpu_names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "common/plain_text.hpp"
#include "common/text.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_sheets.hpp"

namespace ganymede::platforms {
namespace {

/// Words in upper case: "NVIDIA GeForce RTX 4090" and "RTX4090" share "RTX" and "4090".
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The words but for those in a row that are the family of a GPU, "A100" or "RTX 4090"; nothing if it is not among
/// them.
std::optional<std::vector<std::string>> without_family(const std::vector<std::string>& words,
                                                       const std::string& family) {
  std::string wanted;
  for (const std::string& word : words_of(family)) wanted += word;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string joined;
    for (std::size_t j = i; j < words.size() && joined.size() < wanted.size(); ++j) {
      if ((joined += words[j]) != wanted) continue;
      std::vector<std::string> rest(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(j) + 1, words.end());
      return rest;
    }
  }
  return std::nullopt;
}

/// True for "80GB" or "80G".
bool is_memory(const std::string& word) {
  return (word.ends_with("GB") || word.ends_with("G")) && word.size() > 2 &&
         std::isdigit(static_cast<unsigned char>(word[0])) != 0;
}
bool has_memory(const Gpu& gpu, const std::string& word) {
  return std::abs(std::atof(word.c_str()) * 1e9 - gpu.memory.si) < 0.15 * gpu.memory.si;
}

/// True if a number in a name is the GPU's memory in GiB. Where the platform states what a driver sees, as the 22.4 of
/// an A10's 24, that is less than is sold; beside a GH200 stands its processor's.
bool is_own_memory(const Gpu& gpu, const std::string& word) {
  constexpr double kSame = 0.08;
  const double named = std::atof(word.c_str()), gib = gpu.memory.si / 1073741824;
  const bool as_sold = gib == 8 * std::round(gib / 8);
  return named == std::round(gib) || (!as_sold && std::abs(named - gib) < kSame * gib) || gpu.name.starts_with("GH");
}

/// True if a GPU may be called so beside its family: by its maker, how it is built, or its memory. A chip for laptops,
/// a "Ti" or a "D" is another one.
bool may_be_called(const Gpu& gpu, const std::string& word) {
  if (word.find_first_not_of("0123456789") == word.npos)  // "a100_80" of Slurm's types; a blank at the end says nothing
    return word.empty() || is_own_memory(gpu, word);
  if (is_memory(word)) return is_own_memory(gpu, word);
  for (const char* known :
       {"NVIDIA",    "TESLA",  "GEFORCE",     "QUADRO",  "AMD",      "INSTINCT",   "RADEON", "RTX",      "GTX",
        "SXM",       "HBM",    "PCIE",        "OAM",     "NVL",      "DGX",        "MEGA",   "GPU",      "SHARED",
        "TENSOR",    "CORE",   "GRACE",       "HOPPER",  "AMPERE",   "PASCAL",     "ADA",    "LOVELACE", "GENERATION",
        "BLACKWELL", "SERVER", "WORKSTATION", "EDITION", "GRAPHICS", "ACCELERATOR"})
    if (word.starts_with(known)) return true;
  return false;
}

}  // namespace

bool is_gpu_name(const std::string& text, const std::string& name) {
  const auto squeezed = [](const std::string& from) {
    std::string out;
    for (const char c : lower_case(from))
      if (c != ' ' && c != '-' && c != '_') out += c;
    for (const char* maker : {"nvidia", "geforce", "tesla"})
      if (out.starts_with(maker)) out.erase(0, std::string(maker).size());
    return out;
  };
  const std::string one = squeezed(text), other = squeezed(name);
  return one == other || "rtx" + one == other || "gtx" + one == other;
}

int gpu_likeness(const std::string& name, const Gpu& gpu) {
  if (gpu.kind != Gpu::Kind::gpu || name.empty()) return 0;
  if (is_gpu_name(name, gpu.name)) return 100;
  const auto words = words_of(name);
  auto rest = without_family(words, gpu.name);
  if (!rest) rest = without_family(words, gpu.family);
  if (!rest) {  // "MI300" is a MI300X, and the only one that is rented
    const GpuSheet* sheet = find_gpu_sheet(name);
    return sheet != nullptr && sheet->name == gpu.name ? 1 : 0;
  }
  for (const std::string& word : *rest)
    if (!may_be_called(gpu, word)) return 0;
  int points = 10;
  const auto is = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (is("PCIE")) points += has(gpu.name, "PCIE") ? 4 : -4;
  if (is("NVL") != has(gpu.name, "NVL")) points -= 4;
  if (!is("PCIE") && has(gpu.name, "PCIE")) points -= 4;
  for (const std::string& word : words)
    if (is_memory(word)) points += has_memory(gpu, word) ? 2 : -2;
  return points;
}

std::vector<std::string> gpus_named(const std::string& text, const std::vector<Gpu>& gpus) {
  std::set<std::string> names;
  for (const Gpu& gpu : gpus)
    if (is_gpu_name(text, gpu.family) || is_gpu_name(text, gpu.name)) names.insert(gpu.name);
  const bool is_other = names.empty();
  int best = 1;
  for (const Gpu& gpu : gpus) {
    const int points = is_other ? gpu_likeness(text, gpu) : 0;
    if (points > best) names.clear();
    if (points >= best) best = points, names.insert(gpu.name);
  }
  if (names.empty()) return {text};
  return {names.begin(), names.end()};
}

std::optional<SkyGpu> gpu_by_sheet(const std::string& name) {
  const SkyGpu found = gpu_of({.cloud = "", .name = name, .info = "", .count = 1});
  if (found.sheet == nullptr || found.sheet->capability == 0) return std::nullopt;
  Gpu gpu;
  gpu.name = found.sheet->name;
  gpu.memory = Bytes{found.sheet->memory_bytes};
  if (found.memory_gib * 1073741824 != gpu.memory.si) return std::nullopt;
  for (const std::string& word : words_of(name))
    if (is_memory(word) && !is_own_memory(gpu, word)) return std::nullopt;
  return found;
}

std::optional<Gpu> gpu_of_sheet(const std::string& name) {
  const auto found = gpu_by_sheet(name);
  if (!found) return std::nullopt;
  const GpuSheet& sheet = *found->sheet;
  Gpu gpu;
  gpu.name = gpu.family = sheet.name;
  gpu.memory = Bytes{sheet.memory_bytes};
  gpu.fp32 = FlopsPerSecond{sheet.fp32_flops()};
  if (sheet.tensor_fp16_flops > 0) gpu.tensor = FlopsPerSecond{sheet.tensor_fp16_flops};
  gpu.memory_bandwidth = BytesPerSecond{sheet.memory_bandwidth};
  return gpu;
}

const GpuSheet* sheet_named(const std::string& name) {
  const GpuSheet* sheet = find_gpu_sheet(name);
  if (sheet == nullptr || gpu_by_sheet(name)) return sheet;
  for (const std::string& provider : provider_names())
    for (const Gpu& gpu : catalog(provider).gpus) {
      const GpuSheet* rented = find_gpu_sheet(gpu.name);
      // Catalogs that have one V100 of 32 GB mean its card for PCIe too.
      const bool same = rented != nullptr && (rented == sheet || rented->name + "-PCIE" == sheet->name);
      if (same && gpu_likeness(name, gpu) > 0) return sheet;
    }
  return nullptr;
}

std::string did_you_mean_gpu(const std::string& text) {
  std::set<std::string> names;
  for (const std::string& provider : provider_names())
    for (const Gpu& gpu : catalog(provider).gpus) names.insert({gpu.name, gpu.family});
  for (const GpuSheet& sheet : gpu_sheets()) names.insert(sheet.name);
  return did_you_mean(text, {names.begin(), names.end()});
}

}  // namespace ganymede::platforms
