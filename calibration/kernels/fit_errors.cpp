#include <algorithm>
#include <cmath>

#include "calibration/kernels/error_of_sums.hpp"
#include "calibration/kernels/fit.hpp"

namespace ganymede::calibration {
namespace {

std::string label_of(const MeasuredKernel& row) {
  const std::string part = row.set == "elementwise"      ? row.kernel.op
                           : row.set == "deepbench-conv" ? std::string(to_string(row.kernel.kind)) + " " +
                                                               std::string(to_string(row.kernel.precision))
                                                         : std::string(to_string(row.kernel.precision));
  return row.set + " " + part;
}

/// The quantile below which one more value falls with a chance of about `share`: with few values, the least of them.
double low_quantile(std::vector<double>& values, double share) {
  const double rank = std::round(share * static_cast<double>(values.size() + 1));
  const auto place = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
  return values[place];
}
double high_quantile(std::vector<double> values, double share) {
  for (double& value : values) value = -value;
  return -low_quantile(values, share);
}

using Durations = std::array<std::vector<double>, kDurations>;

std::vector<double> joined(const Durations& durations) {
  std::vector<double> all;
  for (const std::vector<double>& values : durations) all.insert(all.end(), values.begin(), values.end());
  return all;
}

constexpr double kLeastSpread = 0.005;
constexpr double kTwoSided = 1.645;  // of a normal distribution: 90 % are within
constexpr std::size_t kFewestOfGroup = 25;

Spread spread_of(std::vector<double> values) {
  return {std::min(-kLeastSpread, low_quantile(values, 0.05)), std::max(kLeastSpread, high_quantile(values, 0.05))};
}

/// Both ends further from 0, by squares.
Spread widened(Spread spread, double by) { return {-std::hypot(spread.low, by), std::hypot(spread.high, by)}; }

/// Standard deviation of the chips' medians about their groups' mean.
template <class ByChip>
double shift_of(const ByChip& chips) {
  double squares = 0, free = 0;
  for (std::size_t group = 0; group < kGroups; ++group) {
    std::vector<double> medians;
    for (const auto& [chip, groups] : chips)
      if (std::vector<double> values = joined(groups[group]); values.size() >= kFewestOfGroup)
        medians.push_back(low_quantile(values, 0.5));
    if (medians.size() < 2) continue;
    double mean = 0;
    for (const double median : medians) mean += median / static_cast<double>(medians.size());
    for (const double median : medians) squares += (median - mean) * (median - mean);
    free += static_cast<double>(medians.size() - 1);
  }
  return free > 0 ? std::sqrt(squares / free) : 0;
}

}  // namespace

std::vector<ErrorRow> errors_of(const std::vector<MeasuredKernel>& rows,
                                const std::function<KernelTime(const MeasuredKernel&)>& expected) {
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<double, double>>> parts;
  std::map<std::pair<std::string, std::string>, int> held;
  for (const MeasuredKernel& row : rows) {
    const KernelTime time = expected(row);
    for (const std::string& gpu : {row.gpu, std::string("all")}) {
      parts[{label_of(row), gpu}].emplace_back(time.central_s, row.measured_s);
      held[{label_of(row), gpu}] += row.measured_s >= time.low_s && row.measured_s <= time.high_s;
    }
  }
  std::vector<ErrorRow> result;
  RandomStream random(kSumSeed, "kernels/sums");
  for (const auto& [key, pairs] : parts) {
    const auto count = static_cast<double>(pairs.size());
    double sum = 0;
    std::vector<double> ratios;
    for (const auto& [e, m] : pairs) sum += std::abs(e / m - 1), ratios.push_back(e / m);
    result.push_back({key.first, key.second, pairs.size(), sum / count, error_of_sums(pairs, random), held[key] / count,
                      low_quantile(ratios, 0.5)});
  }
  return result;
}

void Leftovers::add(const Parameters& predict_with, const std::vector<MeasuredKernel>& rows) {
  const RowPredictor predictor(predict_with, rows);
  const MeasuringMethod& method = predictor.method();
  for (const MeasuredKernel& row : rows) {
    const auto [candidate, seconds] = predictor.model_of(row).chosen(row.kernel, MeasuringMethod::load(row));
    const double expected = method.expected_s(row, seconds);
    if (row.set != "conv3x3" && expected < 1.1 * method.floor_s(row))
      floors_[find_gpu_sheet(row.gpu)->name][MeasuringMethod::operation(row)].push_back(
          std::log(row.measured_s / expected));
    if (!method.tells_device(row, seconds)) continue;
    const double device = std::max(method.device_s(row), 0.2 * seconds);
    logarithms_[chip_key(*find_gpu_sheet(row.gpu))][static_cast<std::size_t>(candidate.group)][duration_class(seconds)]
        .push_back(std::log(device / seconds));
  }
}

Leftovers::Values Leftovers::together() const {
  Values all;
  for (const auto& [chip, groups] : logarithms_)
    for (std::size_t group = 0; group < kGroups; ++group)
      for (std::size_t i = 0; i < kDurations; ++i)
        all[group][i].insert(all[group][i].end(), groups[group][i].begin(), groups[group][i].end());
  return all;
}

Spreads Leftovers::known(const std::string& chip, const Spreads& otherwise) const {
  const Values all = together();
  const auto found = logarithms_.find(chip);
  const Values own = found == logarithms_.end() ? Values() : found->second;
  Spreads result = otherwise;
  for (std::size_t group = 0; group < kGroups; ++group)
    for (std::size_t i = 0; i < kDurations; ++i)
      for (const std::vector<double>& values : {own[group][i], joined(own[group]), all[group][i], joined(all[group])})
        if (values.size() >= kFewest) {
          result[group][i] = spread_of(values);
          break;
        }
  return result;
}

std::map<std::string, std::map<std::string, Spread>> Leftovers::floor_spreads() const {
  std::map<std::string, std::map<std::string, Spread>> result;
  for (const auto& [gpu, operations] : floors_)
    for (const auto& [operation, values] : operations)
      if (values.size() >= kFewestOfGroup) result[gpu][operation] = spread_of(values);
  return result;
}

Spreads Leftovers::unseen() const {
  const Values all = together();
  const double shift = kTwoSided * shift_of(logarithms_);
  Spreads result;
  std::array<bool, kGroups> told{};
  Spread widest;
  for (std::size_t group = 0; group < kGroups; ++group)
    for (std::size_t i = 0; i < kDurations; ++i)
      for (const std::vector<double>& values : {all[group][i], joined(all[group])}) {
        if (values.size() < kFewestOfGroup) continue;
        result[group][i] = widened(spread_of(values), shift);
        widest = {std::min(widest.low, result[group][i].low), std::max(widest.high, result[group][i].high)};
        told[group] = true;
        break;
      }
  for (std::size_t group = 0; group < kGroups; ++group)
    if (!told[group]) result[group].fill(widest);
  return result;
}

}  // namespace ganymede::calibration
