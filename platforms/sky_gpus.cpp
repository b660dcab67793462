#include "platforms/sky_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace ganymede::platforms {
namespace {

/// RunPod's list means cards for PCIe by the bare names (sky/catalog/data_fetchers/fetch_runpod.py of SkyPilot, whose
/// other names end with SXM and NVL).
constexpr std::string_view kBareNamesAreCards = "runpod";
/// On these clouds the stated memory is that of all GPUs of the machine (SkyPilot's fetch_vast.py and
/// fetch_primeintellect.py).
constexpr std::string_view kMemoryIsOfAll[] = {"vast", "primeintellect"};

std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

/// The number before "GB" or "G" in a name, as a word of its own: 32 of "V100-32GB"; 0 if there is none.
double gib_in_name(std::string_view name) {
  const auto is_digit = [&](std::size_t at) { return std::isdigit(static_cast<unsigned char>(name[at])) != 0; };
  for (std::size_t at = name.find_first_of("Gg"); at != std::string_view::npos; at = name.find_first_of("Gg", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(begin - 1)) --begin;
    if (begin == at || (begin > 0 && std::isalnum(static_cast<unsigned char>(name[begin - 1])))) continue;
    double value = 0;
    std::from_chars(name.data() + begin, name.data() + at, value);
    return value;
  }
  return 0;
}

/// The first number behind "SizeInMiB" in GiB, however that is spelt; 0 if there is none. Some lists have GiB there, as
/// Shadeform's (48 for an A6000); no GPU has less than one or as many as 1024.
double gib_in_info(std::string_view info) {
  const std::string letters = [&] {
    std::string lower(info);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower;
  }();
  std::size_t at = letters.find("sizeinmib");
  if (at == std::string::npos) return 0;
  at = letters.find_first_of("0123456789", at);
  double mib = 0;
  if (at != std::string::npos) std::from_chars(letters.data() + at, letters.data() + letters.size(), mib);
  return mib < 1024 ? mib : mib / 1024;
}

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

/// GB/s to which a GPU's NVLinks add up one way, by NCCL's tuner; 0: it has none, or none that all GPUs share.
struct NvLink {
  double rate = 0;
  int links = 0;
  bool reduces = false;  ///< its switches sum up: NVLink SHARP, from the third generation of switches on
};
NvLink nvlink_of(std::string_view name) {
  if (name == "A100-40GB" || name == "A100-80GB") return {240, 12, false};
  if (name == "A800") return {160, 8, false};  // 400 GB/s in both directions, as the H800
  if (name == "H800") return {164.8, 8, true};
  if (name == "H100" || name == "H20" || name == "H200" || name == "GH200") return {370.8, 18, true};
  if (name.starts_with("B200") || name.starts_with("B300") || name.starts_with("GB")) return {721.8, 18, true};
  return {};
}

/// Accelerators that are no GPUs: dense rate at 16 bits and at fp32 in TFLOP/s, memory in GiB and GB/s, and power in W,
/// 0 where its maker states none. Rates of Gaudi and of the first Inferentia at fp32 are not published.
struct Chip {
  std::string_view name, model;  ///< "HL225" of "HL-225B"
  double fp16, fp32, memory_gib, bandwidth_gb, power_w;
};
constexpr Chip kChips[] = {{"Trainium", "", 190, 47.5, 32, 820, 0},       {"Trainium2", "", 667, 181, 96, 2900, 0},
                           {"Inferentia", "", 64, 16, 8, 50, 0},          {"Inferentia2", "", 190, 47.5, 32, 820, 0},
                           {"Gaudi", "HL205", 60, 15, 32, 900, 400},      {"Gaudi2", "HL225", 432, 108, 96, 2460, 600},
                           {"Gaudi3", "HL325", 1835, 459, 128, 3670, 900}};

/// The sheet of the chip of a name such as "Gaudi HL-205"; nullptr for any other. It has no compute capability, so that
/// the model of a GPU's kernels does not take it.
const GpuSheet* chip_of(std::string_view name) {
  static const auto kSheets = [] {
    std::array<GpuSheet, std::size(kChips)> sheets;
    for (std::size_t i = 0; i < sheets.size(); ++i) {
      const Chip& chip = kChips[i];
      sheets[i].name = chip.name, sheets[i].memory_bytes = chip.memory_gib * 1073741824;
      sheets[i].multiprocessors = sheets[i].fp32_lanes = 1, sheets[i].clock_hz = chip.fp32 * 1e12 / 2;
      sheets[i].memory_bandwidth = chip.bandwidth_gb * 1e9, sheets[i].tensor_fp16_flops = chip.fp16 * 1e12;
      sheets[i].power_w = chip.power_w;
    }
    return sheets;
  }();
  const std::string own = letters_of(name);
  for (std::size_t i = 0; i < kSheets.size(); ++i)
    if (!kChips[i].model.empty() && has(own, kChips[i].model)) return &kSheets[i];
  for (const GpuSheet& sheet : kSheets) {
    const std::string wanted = letters_of(sheet.name);
    const std::size_t at = own.find(wanted), end = at + wanted.size();
    if (at != own.npos && (end == own.size() || std::isdigit(static_cast<unsigned char>(own[end])) == 0)) return &sheet;
  }
  return nullptr;
}
bool is_chip(const GpuSheet& sheet) { return sheet.capability == 0; }

bool is_amd(const GpuSheet& sheet) { return sheet.name.starts_with("MI") || sheet.name == "V520"; }
/// Cards for desktops, whose drivers forbid them direct access to each other.
bool is_consumer(const GpuSheet& sheet) {
  const std::string_view name = sheet.name;
  return name.starts_with("GTX") || name.starts_with("TITAN") ||
         (name.starts_with("RTX") && !has(name, "Ada") && name.size() > 3 &&
          std::isdigit(static_cast<unsigned char>(name[3])) && name.substr(4, 3) != "000");
}

std::string family_of(std::string_view name) {
  for (const std::string_view family : {"P100", "V100", "A100", "H100"})
    if (name.starts_with(family) && name != family) return fmt::format("\"family\": \"{}\", ", family);
  const std::size_t share = name.find("-1of");
  return share == std::string_view::npos ? "" : fmt::format("\"family\": \"{}\", ", name.substr(0, share));
}

}  // namespace

bool names_a_card(std::string_view name) { return has(letters_of(name), "PCIE"); }

SkyGpu gpu_of(const SkyAccelerator& from) {
  std::string name(from.name);
  const std::string own = letters_of(name);
  SkyGpu out;
  out.sheet = find_gpu_sheet(name);
  if (out.sheet == nullptr) out.sheet = chip_of(name);
  if (out.sheet == nullptr) return out;
  out.memory_gib = from.memory_gib > 0 ? from.memory_gib : gib_in_name(name);
  if (out.memory_gib == 0) {
    const bool of_all = std::count(std::begin(kMemoryIsOfAll), std::end(kMemoryIsOfAll), from.cloud) > 0;
    out.memory_gib = gib_in_info(from.info) / (of_all ? std::max(1.0, from.count) : 1);
  }
  const bool card = !has(own, "SXM") && !has(own, "HBM3") &&
                    (from.card || names_a_card(name) || names_a_card(from.info) ||
                     (from.cloud == kBareNamesAreCards && !has(own, "NVL")));
  const std::string_view sheet = out.sheet->name;
  if (sheet.starts_with("A100"))
    name = std::string(out.memory_gib > 60 || (out.memory_gib == 0 && has(sheet, "80GB")) ? "A100-80GB" : "A100-40GB") +
           (card || has(sheet, "PCIE") ? "-PCIE" : "");
  else if (sheet.starts_with("H100"))
    name = has(sheet, "NVL") || std::lround(out.memory_gib) == 94 ? "H100-NVL" : card ? "H100-PCIE" : sheet;
  else if (sheet == "V100" && card)
    name = "V100-PCIE";
  else
    name = sheet;
  if (!is_chip(*out.sheet)) out.sheet = find_gpu_sheet(name);
  const double sheet_gib = out.sheet->memory_bytes / 1073741824;
  constexpr double kSameMemory = 0.12;  // makers' and drivers' figures for one memory differ by less
  const bool as_sheet = out.memory_gib == 0 || std::abs(out.memory_gib / sheet_gib - 1) < kSameMemory;
  if (as_sheet) out.memory_gib = sheet_gib;
  out.name = name;
  if (!as_sheet || name == "V100-PCIE") out.name += fmt::format("-{:.0f}GB", out.memory_gib);
  if (from.count < 1) {
    out.share = from.count;
    out.name += fmt::format("-1of{:.0f}", 1 / from.count);
  }
  return out;
}

std::string gpu_text(const SkyGpu& gpu) {
  const GpuSheet& sheet = *gpu.sheet;
  const double part = gpu.share;
  std::string out = std::string("{ ") + (is_chip(sheet) ? "\"kind\": \"tpu\", " : "") + family_of(gpu.name);
  out += fmt::format("\"memory\": \"{:.4g}GiB\", \"fp32\": \"{:.4g}Tflop/s\", ", part * gpu.memory_gib,
                     part * sheet.fp32_flops() * 1e-12);
  if (sheet.tensor_fp16_flops > 0)
    out += fmt::format("\"tensor\": \"{:.5g}Tflop/s\", ", part * sheet.tensor_fp16_flops * 1e-12);
  out +=
      fmt::format("\"memory_bandwidth\": \"{:.5g}GB/s\", \"launch\": \"3.8us\",", part * sheet.memory_bandwidth * 1e-9);
  if (sheet.power_w > 0) out += fmt::format(" \"power\": {{ \"peak\": \"{:.4g}W\" }},", part * sheet.power_w);
  out += '\n';
  std::string doubt = sheet.name == "V100" ? "" : "launch: measured on a V100, taken over for this GPU";
  if (is_amd(sheet)) doubt += "; no kernel of an AMD GPU was measured, and RCCL is taken to cost what NCCL does";
  if (is_chip(sheet))
    doubt += "; no kernel was measured on it, it runs no CUDA program, and the links between such chips are left out";
  if (sheet.name.starts_with("Inferentia"))
    doubt += "; it is made for inference: whether a training runs on it at all is not known (AWS trains on Trainium)";
  if (sheet.name.starts_with("Gaudi") || sheet.name == "Inferentia")
    doubt += "; fp32: taken to be a quarter of 16 bits";
  if (sheet.name == "Gaudi")
    doubt += "; its rate at 16 bits, bandwidth and power: from one talk, not confirmed elsewhere";
  if (part < 1) doubt += "; a share of a GPU is taken to have that share of its rates";
  if (doubt.starts_with("; ")) doubt.erase(0, 2);
  return out + "      \"source\": \"SHEETS; launch CUDA-GRAPHS\"" +
         (doubt.empty() ? " }" : fmt::format(", \"unconfirmed\": \"{}\" }}", doubt));
}

std::string links_text(const GpuSheet& sheet, int gpus) {
  // PCIe 3 x16: 12 GB/s, twice that with each generation (NCCL-TUNER).
  const int generation = sheet.capability < 80 ? 3 : sheet.capability < 90 ? 4 : 5;
  const double pcie = 12 << (generation - 3);
  std::string out;
  const NvLink nvlink = nvlink_of(sheet.name);
  if (gpus > 1 && nvlink.rate > 0) {
    out += fmt::format(
        "      \"gpu_links\": {{ \"kind\": \"nvswitch\", \"bandwidth\": \"{:g}GB/s\", \"latency\": \"3.4us\", "
        "{}\"source\": "
        "\"NCCL-TUNER, {} links through NVSwitch\", \"unconfirmed\": \"that the GPUs are joined so: the list does not "
        "say\" }},\n",
        nvlink.rate, nvlink.reduces ? "\"reduces\": true, " : "", nvlink.links);
  } else if (gpus == 8 && sheet.name.starts_with("MI3")) {
    std::string pairs;
    for (int a = 0; a < gpus; ++a)
      for (int b = a + 1; b < gpus; ++b) pairs += fmt::format("{}[{}, {}, 1]", pairs.empty() ? "" : ", ", a, b);
    out += fmt::format(
        "      \"gpu_links\": {{ \"kind\": \"mesh\", \"bandwidth\": \"64GB/s\", \"latency\": \"3.4us\", \"links\": "
        "[{}],\n"
        "        \"source\": \"SHEETS: an Infinity Fabric link to each other GPU; latency NCCL-TUNER\", "
        "\"unconfirmed\": "
        "\"the data sheet's peak, of which RCCL reaches a part; latency: of NVLink\" }},\n",
        pairs);
  } else if (gpus > 1 && !is_consumer(sheet)) {
    out += fmt::format(
        "      \"gpu_links\": {{ \"kind\": \"pcie\", \"bandwidth\": \"{:g}GB/s\", \"latency\": \"5.7us\", \"source\": "
        "\"NCCL-TUNER, "
        "PCIe {}\", \"unconfirmed\": \"that the GPUs are joined so: the list does not say\" }},\n",
        pcie, generation);
  }
  return out + fmt::format(
                   "      \"host_link\": {{ \"bandwidth\": \"{:g}GB/s\", \"latency\": \"1us\", \"source\": "
                   "\"NCCL-TUNER, PCIe "
                   "{}\" }},\n",
                   pcie, generation);
}

std::span<const std::pair<std::string_view, std::string_view>> sky_sources() {
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {
      {"SHEETS",
       "NVIDIA's and AMD's data sheets and architecture papers: multiprocessors, boost clock, memory, power of the "
       "board, "
       "dense tensor rate with 32-bit sums. fp32: 2 x lanes x boost clock. Trainium, Inferentia: AWS Neuron "
       "documentation 2.28, "
       "awsdocs-neuron.readthedocs-hosted.com. Gaudi: R. Kaplan, \"Intel Gaudi 3 AI Accelerator\", Hot Chips 2024"},
      {"CUDA-GRAPHS",
       "A. Gray, \"Getting Started with CUDA Graphs\", NVIDIA technical blog, 2019, "
       "developer.nvidia.com/blog/cuda-graphs: "
       "V100, CUDA 10.1: 3.8 us a kernel when launches overlap"},
      {"NCCL-TUNER",
       "NVIDIA/nccl src/graph/tuning.cc and topo.h @5067397c2676, June 2026. NVLink: 18 to 20.6 GB/s a link and "
       "direction "
       "by generation, twice that with the fifth; PCIe 3 x16: 12 GB/s, taken to double with each generation. Latency: "
       "a "
       "hop of its ring with the Simple protocol (NVLink 3.4 us, PCIe 5.7 us); host links its PCIe hop with LL, 1 us"},
      {"NCCL-TCP",
       "nccl-tests all-reduce, 2 nodes of 1 GPU over TCP sockets, aws-samples/aws-do-eks karpenter README: 98.8 us at "
       "4 "
       "bytes. Less 6.6 us to start, over 2 rounds, less 1 us for each host link: 22 us for each NIC"}};
  return kSources;
}

}  // namespace ganymede::platforms
