#include "calibration/worker_variation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "common/random.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::calibration {
namespace {

/// The quantile of the standard normal distribution for 0 < p < 1, with a relative error below 1.2e-9: P. J. Acklam's
/// rational approximation (2003).
double normal_quantile(double p) {
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                           6.680131188771972e+01,  -1.328068155288572e+01, 1};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00,
                           1};
  const auto polynomial = [](const auto& terms, double x) {
    double sum = 0;
    for (const double term : terms) sum = sum * x + term;
    return sum;
  };
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < 0.02425) {
    const double q = std::sqrt(-2 * portable_log(p));
    return polynomial(kC, q) / polynomial(kD, q);
  }
  const double q = p - 0.5;
  return q * polynomial(kA, q * q) / polynomial(kB, q * q);
}

}  // namespace

bool is_eager(const traces::TraceSoftware& software) {
  return software.name == "PyTorch" || software.backend == traces::kRooflineBackend;
}

WorkerVariation default_worker_variation(const traces::TraceSoftware& software) {
  return is_eager(software) ? kEagerVariation : kGraphVariation;
}

double work_on_gradients(const WorkerVariation& variation, const platforms::Gpu& gpu) {
  if (variation.bandwidth == 0 || gpu.kind == platforms::Gpu::Kind::cpu) return 1;
  return variation.bandwidth / gpu.memory_bandwidth.si;
}

double expected_slowest(std::size_t workers, std::size_t k) {
  assert(k >= 1 && k <= workers);
  if (workers == 1) return 0;
  const auto n = static_cast<double>(workers);
  return normal_quantile((n - static_cast<double>(k) + 1 - 0.375) / (n + 0.25));
}

double synchronization_slowdown(const WorkerVariation& variation, std::size_t workers, std::size_t not_waited_for,
                                double steps, double bytes, double step_s) {
  if (workers < 2) return 1;
  const double between = std::min(variation.between, variation.central);
  const double within = variation.central * variation.central - between * between;
  const double waiting = std::sqrt(between * between + within / steps) *
                         std::max(0.0, expected_slowest(workers, std::min(workers, 1 + not_waited_for)));
  const double work = step_s > 0 ? variation.seconds_per_byte * bytes / (steps * step_s) : 0;
  return 1 + waiting + work;
}

}  // namespace ganymede::calibration
