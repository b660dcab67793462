#include "calibration/quality/sample.hpp"

#include <array>

namespace ganymede::calibration {
namespace {

constexpr int kSettlingSteps = 2000, kStepsEach = 5;
/// Lengths of steps, in standard deviations: short ones are accepted where the posterior bends, long ones cross it.
constexpr std::array kLengths = {0.3, 1.2, 3.0};

/// Adds a normal step with the covariance that `lower` is the root of.
Shape stepped(const Shape& from, const Matrix& lower, double length, RandomStream& random) {
  Shape to = from;
  std::array<double, kShapeSize> normal{};
  for (double& value : normal) value = random.normal();
  for (std::size_t i = 0; i < kShapeSize; ++i)
    for (std::size_t j = 0; j <= i; ++j) to.at(i) += length * lower.at(i, j) * normal.at(j);
  return to;
}

}  // namespace

std::vector<Shape> sample_shapes(const SeenCurve& seen, const ShapePrior& prior, double variance, const ShapeFit& fit,
                                 std::size_t count, RandomStream& random) {
  const std::array lowers = {cholesky(fit.covariance), cholesky(prior.covariance)};
  std::vector<Shape> out;
  if (seen.ln_fid.empty()) {
    while (out.size() < count) out.push_back(stepped(prior.mean, lowers[1], 1, random));
    return out;
  }
  const Matrix precision = inverse(prior.covariance);
  Shape at = fit.shape;
  double cost = shape_cost(seen, prior, precision, variance, at);
  for (int i = -kSettlingSteps; out.size() < count; ++i) {
    // Three of four steps are as wide as the posterior about the fit, one is as wide as the prior.
    const Matrix& lower = lowers[random.below(4) == 0 ? 1 : 0];
    const Shape tried = stepped(at, lower, kLengths[random.below(kLengths.size())], random);
    const double then = shape_cost(seen, prior, precision, variance, tried);
    if (2 * random.exponential() >= then - cost) {
      at = tried;
      cost = then;
    }
    if (i >= 0 && i % kStepsEach == 0) out.push_back(at);
  }
  return out;
}

}  // namespace ganymede::calibration
