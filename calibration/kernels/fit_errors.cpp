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
    if (!method.tells_device(row, seconds)) continue;
    const double device = std::max(method.device_s(row), 0.2 * seconds);
    logarithms_[static_cast<std::size_t>(candidate.group)][duration_class(seconds)].push_back(
        std::log(device / seconds));
  }
}

std::size_t Leftovers::rows(std::size_t group) const {
  std::size_t count = 0;
  for (const auto& values : logarithms_[group]) count += values.size();
  return count;
}

std::array<std::array<Spread, kDurations>, kGroups> Leftovers::spreads(double widened) const {
  constexpr std::size_t fewest = 25;  // of a group
  const auto spread_of = [widened](std::vector<double> values) {
    return Spread{widened * std::min(-0.03, low_quantile(values, 0.05)),
                  widened * std::max(0.03, high_quantile(values, 0.05))};
  };
  std::vector<double> all;
  for (const auto& group : logarithms_)
    for (const auto& values : group) all.insert(all.end(), values.begin(), values.end());
  std::array<std::array<Spread, kDurations>, kGroups> result;
  for (std::size_t group = 0; group < kGroups; ++group) {
    std::vector<double> whole;
    for (const auto& values : logarithms_[group]) whole.insert(whole.end(), values.begin(), values.end());
    for (std::size_t i = 0; i < kDurations; ++i) {
      const std::vector<double>& own = logarithms_[group][i];
      if (!all.empty())
        result[group][i] = spread_of(own.size() >= kFewest ? own : whole.size() >= fewest ? whole : all);
    }
  }
  return result;
}

}  // namespace ganymede::calibration
