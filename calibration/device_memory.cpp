#include "calibration/device_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/statistics.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "traces/layer_list.hpp"
#include "traces/layer_memory.hpp"
#include "traces/recipe.hpp"

namespace ganymede::calibration {
namespace {

constexpr double kMiB = 1 << 20;
constexpr int kMostBatch = 1 << 20;

/// PyTorch's caching allocator holds more than it has handed out, at the peak: blocks are rounded to 512 bytes and
/// cut from segments of 2 MiB, 20 MiB or multiples of 2 MiB (c10/cuda/CUDACachingAllocator.cpp). Mean of the logs of
/// four trainings, which are 1.086 to 1.18: StyleGAN's "gpumem" and "reserved" of a run at 512 pixels (6.13, 6.66) and
/// in NVlabs/stylegan3 issues 216 (9.79, 10.64) and 213 (17.68, 20.87), and an EDM's stats.jsonl
/// (siyeopyoon/Diffusion-Cortical-Thickness-Trajectory: 4.68, 5.33).
constexpr double kFragmentation = 1.12;
/// Half of the 90 % interval of its logarithm: 1.645 standard deviations of these four.
constexpr double kFragmentationError = 0.06;
/// Half of the 90 % interval of ln(published / counted peak) for lists of layers: the 32 peaks of
/// NVlabs/stylegan2-ada-pytorch (README @d72cc7d041b4) and NVlabs/stylegan3 (configs.md @c233a919a6fa), 16
/// configurations, are 0.92 to 1.14 times what is counted, and nothing in the count was fitted to them
/// (tests/traces/layer_memory_test.cpp). An assumption for programs of others, somewhat more than that.
constexpr double kCountError = 0.18;
/// The same for a peak of the same recipe, images and pass, which is published with two digits and grows with the
/// strength of the augmentation; and for one of another pass, of up to four times as many images or as few.
constexpr double kPeakError = 0.05, kCarriedPeakError = 0.12;

/// The CUDA context of a process with PyTorch's kernels. Since CUDA 11.7 kernels are loaded when they are first used:
/// about 300 MB (pytorch/pytorch issue 107667).
constexpr double kContext = 300 * kMiB;
/// Before that all of them were loaded, by compute capability times ten: GTX 1080 721 MB and RTX 3090 1687 MB (issue
/// 55277), Titan V 1008 MB (issue 28394), RTX 2080 Ti 879 MB (issue 49877: 1035 MB with a tensor of 156 MB).
double loaded_context(int capability) {
  return kMiB * (capability < 70 ? 721 : capability < 75 ? 1008 : capability < 80 ? 879 : capability < 89 ? 1687 : 300);
}

/// Kinds that do not grow with the batch.
bool is_fixed(const std::string& kind) {
  static const std::set<std::string> fixed = {"parameters", "gradients", "gradient_sums", "optimizer", "statistics",
                                              "average",    "averages",  "beside",        "workspace"};
  return fixed.contains(kind);
}

double sum_of(const std::map<std::string, double>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0, [](double sum, const auto& kind) {
    return kind.first.starts_with("host") ? sum : sum + kind.second;
  });
}

/// The memory of a stage's step at a batch: straight between the recorded batches next to it.
std::map<std::string, double> memory_at(const std::vector<const traces::TraceBatch*>& entries, int batch) {
  const auto above = std::find_if(entries.begin(), entries.end(),
                                  [&](const traces::TraceBatch* entry) { return entry->batch >= batch; });
  const traces::TraceBatch& next = above == entries.end() ? *entries.back() : **above;
  std::map<std::string, double> bytes = next.memory_bytes;
  if (next.batch == batch) return bytes;
  if (above == entries.begin() || above == entries.end()) {
    for (auto& [kind, size] : bytes)
      if (!is_fixed(kind)) size *= static_cast<double>(batch) / next.batch;
    return bytes;
  }
  const traces::TraceBatch& last = **std::prev(above);
  const double share = static_cast<double>(batch - last.batch) / (next.batch - last.batch);
  for (auto& [kind, size] : bytes) size *= share;
  for (const auto& [kind, size] : last.memory_bytes) bytes[kind] += (1 - share) * size;
  return bytes;
}

std::map<std::string, double> recorded_memory(const traces::StepTrace& trace, int batch) {
  std::map<std::string, std::vector<const traces::TraceBatch*>> stages;
  for (const traces::TraceBatch& entry : trace.batches) stages[entry.stage].push_back(&entry);
  std::map<std::string, double> most;
  for (auto& [stage, entries] : stages) {
    std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
    std::map<std::string, double> bytes = memory_at(entries, batch);
    if (sum_of(bytes) > sum_of(most)) most = std::move(bytes);
  }
  return most;
}

double context_high(const platforms::Gpu& gpu) {
  const GpuSheet* sheet = find_gpu_sheet(gpu.name);
  return std::max(kContext, sheet == nullptr ? kContext : loaded_context(sheet->capability));
}

/// A recipe's measured peak of the same layers and images.
struct MemoryAnchor {
  int pass = 0, gpus = 0;
  bool same_config = false;
  double factor = 1;  ///< what does not live as long as the weights, over what is counted of it
  double error = 0;   ///< half of the 90 % interval of ln(peak)
  std::string text;
};

std::vector<MemoryAnchor> anchors_of(const std::string& name) {
  const traces::Recipe asked = traces::resolve_recipe(name);
  std::vector<MemoryAnchor> anchors;
  for (const documents::RecipeMeasurement& one : asked.document.measured)
    for (const documents::RecipePeak& peak : one.peaks) {
      if (peak.image > 0 && peak.image != asked.training.image) continue;
      const traces::Recipe measured =
          traces::resolve_recipe(traces::recipe_base(name) + (peak.config.empty() ? "" : "/" + peak.config) +
                                 (peak.image > 0 ? fmt::format("?image={}", peak.image) : ""));
      if (measured.settings != asked.settings || measured.training.precision != asked.training.precision) continue;
      double fixed = 0, passing = 0;
      for (const auto& [kind, bytes] : traces::allocated_memory(measured.layers, peak.batch_per_gpu)) {
        (is_fixed(kind) ? fixed : passing) += bytes;
        if (kind == "gradients" && peak.gpus > 1 && !asked.layers.flat_gradients) fixed += bytes;  // buckets
      }
      const double bytes = peak.gib * (1 << 30);
      if (bytes > fixed)
        anchors.push_back(
            {peak.batch_per_gpu, peak.gpus, peak.config == asked.config, (bytes - fixed) / passing, kPeakError,
             fmt::format("measured: {}: {} for {} images a pass{}", one.by, to_string(Bytes{bytes}), peak.batch_per_gpu,
                         peak.image > 0 ? fmt::format(" of {} pixels", peak.image) : "")});
    }
  return anchors;
}

/// The nearest peak of the recipe that the trace was made of.
std::optional<MemoryAnchor> anchor_of(const traces::StepTrace& trace, int pass, bool several_gpus) {
  if (trace.software.name != traces::kRecipeSoftware) return {};
  // A plan asks the same for each of its candidates.
  static std::mutex mutex;
  static std::map<std::string, std::vector<MemoryAnchor>> known;
  const std::lock_guard lock(mutex);
  auto place = known.find(trace.software.version);
  if (place == known.end()) place = known.emplace(trace.software.version, anchors_of(trace.software.version)).first;
  const auto rank = [&](const MemoryAnchor& one) {
    return std::tuple(static_cast<double>(std::max(one.pass, pass)) / std::min(one.pass, pass), !one.same_config,
                      (one.gpus > 1) != several_gpus, one.gpus);
  };
  const auto best = std::min_element(place->second.begin(), place->second.end(),
                                     [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (best == place->second.end()) return {};
  MemoryAnchor anchor = *best;
  if (anchor.pass == pass) return anchor;
  constexpr double kNear = 4;
  const bool is_near = std::max(anchor.pass, pass) <= kNear * std::min(anchor.pass, pass);
  anchor.error = is_near ? kCarriedPeakError : kCountError;
  return anchor;
}

DeviceMemory with_allocator(std::map<std::string, double> bytes, const traces::StepTrace& trace,
                            const platforms::Gpu& gpu, int batch, bool several_gpus) {
  DeviceMemory memory;
  memory.bytes = std::move(bytes);
  const auto anchor = anchor_of(trace, batch, several_gpus);
  if (anchor) {
    memory.measured = anchor->text;
    for (auto& [kind, size] : memory.bytes)
      if (!is_fixed(kind)) size *= anchor->factor;
  }
  const bool counted = traces::is_counted(trace.software);
  memory.allocated = sum_of(memory.bytes);
  if ((!counted && trace.software.name != "PyTorch") || memory.allocated == 0) {
    memory.low = memory.expected = memory.high = memory.allocated;
    return memory;
  }
  if (several_gpus && counted && !traces::reduces_flat(trace.software)) {
    // DistributedDataParallel's buckets are copies of the gradients (gradient_as_bucket_view=False).
    for (const auto& [name, network] : trace.networks)
      memory.bytes["buckets"] += static_cast<double>(network.gradient_bytes);
    memory.allocated = sum_of(memory.bytes);
  }
  memory.bytes["fragmentation"] = (kFragmentation - 1) * memory.allocated;
  memory.bytes["context"] = kContext;
  const double held = kFragmentation * memory.allocated;
  const double count = !counted ? 0 : anchor ? anchor->error : kCountError;
  const double error = portable_exp(in_quadrature(count, kFragmentationError));
  memory.low = held / error + kContext;
  memory.expected = held + kContext;
  memory.high = held * error + context_high(gpu);
  return memory;
}

}  // namespace

DeviceMemory device_memory(const traces::StepTrace& trace, int batch, const platforms::Gpu& gpu, bool several_gpus) {
  return with_allocator(recorded_memory(trace, batch), trace, gpu, batch, several_gpus);
}

DeviceMemory device_memory(const traces::StepTrace& trace, const traces::TraceBatch& entry, const platforms::Gpu& gpu,
                           bool several_gpus) {
  return with_allocator(entry.memory_bytes, trace, gpu, entry.batch, several_gpus);
}

int largest_batch(const traces::StepTrace& trace, const platforms::Gpu& gpu, bool several_gpus, bool surely) {
  const auto fits = [&](int batch) {
    const DeviceMemory memory = device_memory(trace, batch, gpu, several_gpus);
    return (surely ? memory.high : memory.expected) <= gpu.memory.si;
  };
  int most = 0, not_fits = kMostBatch + 1;
  while (most + 1 < not_fits) {
    const int batch = std::midpoint(most, not_fits);
    (fits(batch) ? most : not_fits) = batch;
  }
  return most;
}

std::string to_text(const DeviceMemory& memory) {
  const std::string expected = to_string(Bytes{memory.expected});
  return memory.low == memory.high
             ? expected
             : fmt::format("{} ({} to {})", expected, to_string(Bytes{memory.low}), to_string(Bytes{memory.high}));
}

}  // namespace ganymede::calibration
