#include "calibration/kernels/measuring_method.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

constexpr std::size_t kMinRows = 20;            // rows that tell the floor of a host
constexpr std::size_t kMaxForFloor = 300;       // of them that are looked at
constexpr Spread kFloorSpread = {-0.05, 0.05};  // of a host that the fit did not see

// A convolution starts when the library has chosen an algorithm. On NeuSight's hosts that took 0.02 to 0.8 ms, alike on
// all GPUs for a shape but after no rule of its sizes: the floor of convolutions is the typical delay, the others lie
// between these parts of it (5 % and 95 % of the rows whose kernel takes less than 0.06 ms).
constexpr double kLeastDelay = 0.25, kMostDelay = 2.2;
constexpr double kShort_s = 2e-4;     // device time of the convolutions that tell the typical delay
constexpr double kMaxDelayRatio = 3;  // by which it may differ from what the other operations suggest
constexpr double kTelling = 1;        // least device time, in delays, that a measured one tells

// Host time of an operation's call over that of an addition: mean of the hosts of NeuSight's P100, V100, T4 and A100.
constexpr std::array kCalls = {std::pair{"add", 1.0},   std::pair{"mul", 1.0},    std::pair{"tanh", 0.98},
                               std::pair{"relu", 1.21}, std::pair{"ln", 1.6},     std::pair{"softmax", 1.29},
                               std::pair{"bmm", 1.22},  std::pair{"linear", 2.0}, std::pair{"conv3x3", 2.0}};
constexpr double kConvolutionDelay = 2.3;  // over the shortest calls of convolutions
constexpr double kAddition_s = 31e-6;      // of an addition, the geometric mean of the same hosts

double call_ratio(const std::string& operation) {
  for (const auto& [name, ratio] : kCalls)
    if (operation == name) return ratio;
  return 1;
}

/// The time of the short kernels, without the shortest, which may be outliers.
double shortest_of(std::vector<double> times) {
  const auto place = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 33);
  std::nth_element(times.begin(), place, times.end());
  return *place;
}

std::string sheet_name(const std::string& gpu) {
  const GpuSheet* sheet = find_gpu_sheet(gpu);
  return sheet ? sheet->name : gpu;
}

}  // namespace

std::string MeasuringMethod::operation(const MeasuredKernel& row) {
  if (row.set == "elementwise") return row.kernel.op;
  return row.set.starts_with("deepbench") ? "" : row.set;
}

Load MeasuringMethod::load(const MeasuredKernel& row) {
  return row.set == "conv3x3" || row.set == "elementwise" ? Load::kBurstZeros : Load::kBurst;
}

double MeasuringMethod::best_floor(std::span<const Pair> rows, double delay_share, double expected_s) {
  double best = expected_s, least = 0;
  for (double floor = 0.4 * expected_s; floor < 2.2 * expected_s; floor *= 1.01) {
    double loss = 0.05 * static_cast<double>(rows.size()) * std::abs(portable_log(floor / expected_s));
    for (const Pair& row : rows)
      loss += std::min(0.5, std::abs(std::max(floor, delay_share * floor + row.device_s) / row.measured_s - 1));
    if (least <= 0 || loss < least) best = floor, least = loss;
  }
  return best;
}

double MeasuringMethod::typical_delay(std::span<const Pair> rows, double expected_s) {
  std::vector<Pair> shortest(rows.begin(), rows.end());
  std::sort(shortest.begin(), shortest.end(), [](const Pair& a, const Pair& b) { return a.device_s < b.device_s; });
  std::vector<double> delays;
  for (const Pair& row : shortest)
    if (delays.size() < kMinRows || row.device_s < kShort_s) delays.push_back(row.measured_s - row.device_s);
  if (delays.empty()) return expected_s;
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
  std::nth_element(delays.begin(), middle, delays.end());
  return std::clamp(*middle, expected_s / kMaxDelayRatio, kMaxDelayRatio * expected_s);
}

std::map<std::pair<std::string, std::string>, double> MeasuringMethod::expected_floors(
    std::span<const MeasuredKernel> rows) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> times;
  for (const MeasuredKernel& row : rows)
    if (const std::string name = operation(row); !name.empty()) times[{row.gpu, name}].push_back(row.measured_s);
  std::map<std::string, double> additions;  // by GPU
  for (const auto& [key, measured] : times) {
    double& addition = additions.try_emplace(key.first, 1.5 * kAddition_s).first->second;
    if (measured.size() >= kMinRows)
      addition = std::min(addition, shortest_of(measured) / call_ratio(key.second));
    else
      addition = std::min(addition, kAddition_s);
  }
  std::map<std::pair<std::string, std::string>, double> floors;
  for (const auto& [key, measured] : times)
    floors[key] = additions[key.first] * call_ratio(key.second) * (key.second == "conv3x3" ? kConvolutionDelay : 1);
  return floors;
}

MeasuringMethod::MeasuringMethod(std::shared_ptr<const KernelParameters> parameters,
                                 std::span<const MeasuredKernel> file)
    : parameters_(std::move(parameters)), floors_(expected_floors(file)) {
  std::map<std::pair<std::string, std::string>, std::vector<const MeasuredKernel*>> unknown;
  for (const MeasuredKernel& row : file) {
    const std::string name = operation(row);
    if (name.empty()) continue;
    const auto gpu = parameters_->floors.find(sheet_name(row.gpu));
    if (gpu != parameters_->floors.end() && gpu->second.contains(name))
      floors_[{row.gpu, name}] = gpu->second.at(name);
    else
      unknown[{row.gpu, name}].push_back(&row);
  }
  for (const auto& [key, rows] : unknown)
    if (const GpuSheet* sheet = find_gpu_sheet(key.first); sheet && rows.size() >= kMinRows)
      floors_[key] = file_floor(KernelModel(*sheet, parameters_), rows, floors_[key]);
}

double MeasuringMethod::file_floor(const KernelModel& model, std::span<const MeasuredKernel* const> rows,
                                   double expected_s) const {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < rows.size(); i += 1 + rows.size() / kMaxForFloor)
    pairs.push_back({rows[i]->measured_s, model.chosen(rows[i]->kernel, load(*rows[i])).seconds});
  return rows.front()->set == "conv3x3" ? typical_delay(pairs, expected_s)
                                        : best_floor(pairs, delay_share(*rows.front()), expected_s);
}

double MeasuringMethod::floor_s(const MeasuredKernel& row) const {
  const auto found = floors_.find({row.gpu, operation(row)});
  return found == floors_.end() ? 0 : found->second;
}

double MeasuringMethod::delay_share(const MeasuredKernel& row) const {
  if (row.set == "conv3x3") return 1;
  return (*parameters_)[row.set == "elementwise" ? Scalar::kDelayShareElementwise : Scalar::kDelayShare];
}

double MeasuringMethod::delay_s(const MeasuredKernel& row) const { return floor_s(row) * delay_share(row); }

double MeasuringMethod::expected_s(const MeasuredKernel& row, double device_s) const {
  return std::max(floor_s(row), delay_s(row) + device_s);
}

bool MeasuringMethod::tells_device(const MeasuredKernel& row, double predicted_s) const {
  if (row.set == "conv3x3") return predicted_s > kTelling * delay_s(row);
  const double floor = floor_s(row);
  return row.measured_s >= 1.1 * floor || expected_s(row, predicted_s) >= 1.1 * floor;
}

double MeasuringMethod::device_s(const MeasuredKernel& row) const { return row.measured_s - delay_s(row); }

Spread MeasuringMethod::floor_spread(const MeasuredKernel& row) const {
  const auto gpu = parameters_->floor_spreads.find(sheet_name(row.gpu));
  if (gpu == parameters_->floor_spreads.end()) return kFloorSpread;
  const auto found = gpu->second.find(operation(row));
  return found == gpu->second.end() ? kFloorSpread : found->second;
}

KernelTime MeasuringMethod::expected(const KernelModel& model, const MeasuredKernel& row) const {
  KernelTime time = model.time(row.kernel, load(row));
  if (row.set == "conv3x3") {
    const double delay = delay_s(row), below = (1 - kLeastDelay) * delay, above = (kMostDelay - 1) * delay;
    const double shorter = time.central_s - time.low_s, longer = time.high_s - time.central_s;
    time.central_s += delay;
    time.low_s = time.central_s - std::sqrt(shorter * shorter + below * below);
    time.high_s = time.central_s + std::sqrt(longer * longer + above * above);
    return time;
  }
  const double floor = floor_s(row);
  const Spread spread = floor_spread(row);
  const double low = expected_s(row, time.low_s), high = expected_s(row, time.high_s);
  time.central_s = expected_s(row, time.central_s);
  time.low_s = time.central_s - std::hypot(time.central_s - low, floor * spread.low);
  time.high_s = time.central_s + std::hypot(high - time.central_s, floor * spread.high);
  return time;
}

}  // namespace ganymede::calibration
