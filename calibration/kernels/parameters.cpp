#include "calibration/kernels/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::calibration {
namespace {

constexpr std::size_t kScalars = static_cast<std::size_t>(Scalar::kCount);

// In the order of the enumeration. "work": time of a tile on a multiprocessor over that of its arithmetic at the peak
// rate; "lone": share of a multiprocessor with 64 lanes that one block alone can use.
constexpr std::array<ScalarRange, kScalars> kRanges = {{
    {"tile 128x128 work", 1.05, 1, 1.6},
    {"tile 128x64 work", 1.12, 1, 1.8},
    {"tile 64x64 work", 1.2, 1, 2},
    {"tile 128x32 work", 1.6, 1, 2.5},
    {"tile 32x128 work", 1.25, 1, 2.5},
    {"tile sliced work", 1.5, 1, 3},
    {"tile 128x128 lone", 0.95, 0.3, 1},
    {"tile 128x64 lone", 0.7, 0.2, 1},
    {"tile 64x64 lone", 0.3, 0.1, 1},
    {"tile 128x32 lone", 0.5, 0.1, 1},
    {"tile 32x128 lone", 0.5, 0.1, 1},
    {"tile sliced lone", 0.6, 0.05, 1},
    {"cycles a wave", 5000, 300, 12000},
    {"L2 bytes a cycle and multiprocessor", 32, 8, 64},
    {"L2 reuse", 0.3, 0.1, 4},
    {"L2 speed over memory", 3, 1.5, 6},
    {"Winograd 2x2 work", 1.25, 1, 2},
    {"Winograd 2x2 depth of transforms", 20, 5, 120},
    {"Winograd 2x2 other tile shapes", 1.15, 1, 1.5},
    {"Winograd 4x4 transform bytes", 1, 0.5, 2.5},
    {"implicit GEMM work", 1.2, 0.9, 2.5},
    {"FFT work", 1.3, 0.8, 3},
    {"strided data gradient work", 1.1, 0.8, 4},
    {"data gradient work", 1.1, 0.7, 2},
    {"weight gradient work", 1.2, 0.7, 2.5},
    {"tensor tile work", 1.4, 1, 3},
    {"tensor tile lone", 0.5, 0.1, 1},
    {"tensor strided data gradient work", 1.2, 0.7, 3},
    // cuDNN's nchwToNhwcKernel on a V100 moves 430 to 640 GB/s (nvprof in tensorflow/tensorflow issue 15897).
    {"transpose bytes", 1.6, 1, 3},
    {"scattered half seconds", 8e-10, 2e-10, 4e-9},
    {"energy of an operation over the assumed", 1, 0.75, 1.3},
    {"energy of zeros", 0.6, 0.2, 1},
    {"launch seconds", 2e-6, 1e-6, 6e-6},
    {"delay of the host's floor", 0.6, 0.2, 1},
    {"delay of the host's floor, elementwise", 0.6, 0.2, 1},
}};

struct FeatureRange {
  std::string_view name;
  double first, step;
  std::size_t knots;
};

constexpr std::array<FeatureRange, kFeatures> kFeatureRanges = {{
    {"blocks per multiprocessor", -3, 1, 11},
    {"depth", 1, 1.5, 10},
    {"memory over arithmetic", -5, 1, 11},
    {"fill of tiles or row length", -6, 1.25, 18},
    {"footprint over L2", -8, 2, 9},
    {"span of a wave before capability 7.0, rows of normalizations", -6, 1.5, 16},
    {"span of a wave", -6, 1.5, 9},
}};

constexpr std::array<std::string_view, kGroups> kGroupNames = {"product",
                                                               "batched-product",
                                                               "winograd-2x2",
                                                               "winograd-4x4",
                                                               "implicit-gemm",
                                                               "fft",
                                                               "data-gradient",
                                                               "weight-gradient",
                                                               "strided-forward",
                                                               "tensor-product",
                                                               "tensor-convolution",
                                                               "tensor-gradient",
                                                               "half-storage-convolution",
                                                               "half-storage-scatter",
                                                               "elementwise",
                                                               "normalization",
                                                               "softmax"};

constexpr std::size_t count_knots() {
  std::size_t total = 1;
  for (const FeatureRange& range : kFeatureRanges) total += range.knots;
  return total;
}
constexpr std::size_t kValues = count_knots();

void read_scalars(const JsonNode& node, KernelParameters& parameters) {
  JsonObject in(node);
  for (std::size_t i = 0; i < kScalars; ++i)
    parameters.scalars[i] = in.required(kRanges[i].name).as_number(kRanges[i].low, kRanges[i].high);
  in.finish();
}

void read_gpus(const JsonNode& node, KernelParameters& parameters) {
  for (const auto& [name, gpu] : node.as_map()) {
    JsonObject in(gpu);
    parameters.gpus[name] = {in.required("arithmetic").as_number(0.1, 2), in.required("memory").as_number(0.1, 1.2)};
    in.finish();
  }
}

Spread read_spread(const JsonNode& node) {
  const std::vector<double> ends = node.as_numbers(-5, 5);
  if (ends.size() != 2) node.expected("two ends of an interval");
  return {ends[0], ends[1]};
}

void read_spreads(const JsonNode& node, std::array<Spread, kDurations>& spreads) {
  const std::vector<JsonNode> rows = node.as_array();
  if (rows.size() != kDurations) node.expected("an interval for each class of durations");
  for (std::size_t i = 0; i < kDurations; ++i) spreads[i] = read_spread(rows[i]);
}

Residual read_residual(const JsonNode& node) {
  std::vector<double> values = node.as_numbers(-3, 3);
  if (values.empty()) values.assign(kValues, 0);
  if (values.size() != kValues) node.expected("a value for each knot");
  return Residual(std::move(values));
}

void read_groups(const JsonNode& node, KernelParameters& parameters) {
  JsonObject in(node);
  for (std::size_t i = 0; i < kGroups; ++i) {
    JsonObject group(in.required(kGroupNames[i]));
    parameters.residuals[i] = read_residual(group.required("residual"));
    read_spreads(group.required("interval_left_out"), parameters.left_out[i]);
    group.finish();
  }
  in.finish();
}

void read_chips(const JsonNode& node, KernelParameters& parameters) {
  for (const auto& [name, groups] : node.as_map()) {
    ChipFit& chip = parameters.chips[name];
    chip.known = parameters.left_out;
    JsonObject in(groups);
    for (std::size_t i = 0; i < kGroups; ++i) {
      const auto found = in.optional(kGroupNames[i]);
      if (!found) continue;
      JsonObject group(*found);
      chip.residuals[i] = read_residual(group.required("residual"));
      read_spreads(group.required("interval"), chip.known[i]);
      group.finish();
    }
    in.finish();
  }
}

void read_floors(const JsonNode& node, KernelParameters& parameters) {
  for (const auto& [gpu, operations] : node.as_map())
    for (const auto& [operation, seconds] : operations.as_map())
      parameters.floors[gpu][operation] = seconds.as_number(0, 1);
}

void read_floor_spreads(const JsonNode& node, KernelParameters& parameters) {
  for (const auto& [gpu, operations] : node.as_map())
    for (const auto& [operation, spread] : operations.as_map())
      parameters.floor_spreads[gpu][operation] = read_spread(spread);
}

}  // namespace

std::string_view to_string(Group group) { return kGroupNames[static_cast<std::size_t>(group)]; }

const ScalarRange& range_of(Scalar scalar) { return kRanges[static_cast<std::size_t>(scalar)]; }

std::size_t duration_class(double seconds) { return seconds < 2e-5 ? 0 : seconds < 1e-4 ? 1 : seconds < 1e-3 ? 2 : 3; }

std::size_t Residual::size() { return kValues; }

std::array<std::pair<std::size_t, std::size_t>, kFeatures> Residual::features() {
  std::array<std::pair<std::size_t, std::size_t>, kFeatures> all;
  std::size_t first = 0;
  for (std::size_t i = 0; i < kFeatures; first += kFeatureRanges[i++].knots) all[i] = {first, kFeatureRanges[i].knots};
  return all;
}

std::array<std::pair<std::size_t, double>, 2 * kFeatures + 1> Residual::terms(const Features& features) {
  std::array<std::pair<std::size_t, double>, 2 * kFeatures + 1> result;
  std::size_t base = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    const FeatureRange& range = kFeatureRanges[i];
    const double place =
        std::clamp((features[i] - range.first) / range.step, 0.0, static_cast<double>(range.knots - 1));
    const std::size_t left = std::min(static_cast<std::size_t>(place), range.knots - 2);
    const double part = place - static_cast<double>(left);
    result[2 * i] = {base + left, 1 - part};
    result[2 * i + 1] = {base + left + 1, part};
    base += range.knots;
  }
  result.back() = {base, 1.0};
  return result;
}

double Residual::at(const Features& features) const {
  double sum = 0;
  for (const auto& [index, weight] : terms(features)) sum += values_[index] * weight;
  return sum;
}

void Residual::add(const Residual& other) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

std::string chip_key(const GpuSheet& sheet) {
  return fmt::format("{}.{} with {} multiprocessors", sheet.capability / 10, sheet.capability % 10,
                     sheet.multiprocessors);
}

bool Residual::learned() const {
  return std::any_of(values_.begin(), values_.end(), [](double value) { return value != 0; });
}

KernelParameters::KernelParameters() {
  for (std::size_t i = 0; i < kScalars; ++i) scalars[i] = kRanges[i].start;
}

KernelParameters read_kernel_parameters(const JsonNode& node) {
  KernelParameters parameters;
  JsonObject in(node);
  check_schema(in, "ganymede.kernel-parameters/1");
  in.required("sources"), in.required("fitted_with"), in.required("errors");
  read_scalars(in.required("scalars"), parameters);
  read_gpus(in.required("gpus"), parameters);
  read_groups(in.required("groups"), parameters);
  read_chips(in.required("chips"), parameters);
  read_floors(in.required("host_floors"), parameters);
  read_floor_spreads(in.required("host_floor_intervals"), parameters);
  in.finish();
  return parameters;
}

const std::shared_ptr<const KernelParameters>& built_in_kernel_parameters() {
  static const std::shared_ptr<const KernelParameters> parameters = [] {
    const EmbeddedText& text = embedded_kernel_parameters().front();
    return std::make_shared<const KernelParameters>(
        read_kernel_parameters(JsonNode::parse(text.text, "calibration/kernels/data/parameters.json")));
  }();
  return parameters;
}

}  // namespace ganymede::calibration
