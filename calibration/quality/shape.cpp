#include "calibration/quality/shape.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "common/random.hpp"

namespace ganymede::calibration {

Matrix Matrix::diagonal(std::span<const double> values) {
  Matrix out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out.at(i, i) = values[i];
  return out;
}

void Matrix::add_outer(std::span<const double> v, double weight) {
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t j = 0; j < size_; ++j) at(i, j) += weight * v[i] * v[j];
}

void Matrix::add(const Matrix& other, double weight) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += weight * other.values_[i];
}

std::vector<double> Matrix::times(std::span<const double> v) const {
  std::vector<double> out(size_);
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t j = 0; j < size_; ++j) out[i] += at(i, j) * v[j];
  return out;
}

double Matrix::form(std::span<const double> v) const {
  const std::vector<double> product = times(v);
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += v[i] * product[i];
  return sum;
}

Matrix cholesky(const Matrix& m) {
  Matrix lower(m.size());
  for (std::size_t j = 0; j < m.size(); ++j)
    for (std::size_t i = j; i < m.size(); ++i) {
      double sum = m.at(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= lower.at(i, k) * lower.at(j, k);
      assert(i != j || sum > 0);
      lower.at(i, j) = i == j ? std::sqrt(sum) : sum / lower.at(j, j);
    }
  return lower;
}

std::vector<double> solve(const Matrix& lower, std::vector<double> b) {
  const std::size_t size = lower.size();
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower.at(i, k) * b[k];
    b[i] /= lower.at(i, i);
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) b[i] -= lower.at(k, i) * b[k];
    b[i] /= lower.at(i, i);
  }
  return b;
}

Matrix inverse(const Matrix& m) {
  const Matrix lower = cholesky(m);
  Matrix out(m.size());
  for (std::size_t j = 0; j < m.size(); ++j) {
    std::vector<double> unit(m.size());
    unit[j] = 1;
    const std::vector<double> column = solve(lower, std::move(unit));
    for (std::size_t i = 0; i < m.size(); ++i) out.at(i, j) = column[i];
  }
  // Rounding leaves the two halves unequal in their last bits.
  for (std::size_t i = 0; i < m.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) out.at(i, j) = out.at(j, i) = (out.at(i, j) + out.at(j, i)) / 2;
  return out;
}

namespace {

constexpr int kFitSteps = 40;
constexpr double kLargestExponent = 50;

struct CurvePoint {
  double value;    ///< ln FID
  Shape gradient;  ///< by the shape's members
};

CurvePoint curve_at(const Shape& shape, double ln_images) {
  const double slope = portable_exp(shape[3]), distance = ln_images - shape[2];
  const double power = portable_exp(std::clamp(slope * distance, -kLargestExponent, kLargestExponent));
  const double floor = portable_exp(shape[0]), left = portable_exp(shape[1]) / (1 + power);
  const double fid = floor + left, fall = left / fid * power / (1 + power) * slope;
  return {portable_log(fid), {floor / fid, left / fid, fall, -fall * distance}};
}

struct NormalEquations {
  Matrix curvature;
  std::vector<double> gradient;
};

NormalEquations equations_at(const SeenCurve& seen, const ShapePrior& prior, const Matrix& precision, double variance,
                             const Shape& shape) {
  Shape to = prior.mean;
  for (std::size_t d = 0; d < kShapeSize; ++d) to[d] -= shape[d];
  NormalEquations out{precision, precision.times(to)};
  for (std::size_t i = 0; i < seen.ln_fid.size(); ++i) {
    const CurvePoint at = curve_at(shape, seen.ln_images[i]);
    const double weight = seen.weights[i] / variance;
    out.curvature.add_outer(at.gradient, weight);
    for (std::size_t d = 0; d < kShapeSize; ++d)
      out.gradient[d] += weight * at.gradient[d] * (seen.ln_fid[i] - at.value);
  }
  return out;
}

}  // namespace

double log_fid(const Shape& shape, double ln_images) { return curve_at(shape, ln_images).value; }

Shape log_fid_gradient(const Shape& shape, double ln_images) { return curve_at(shape, ln_images).gradient; }

double shape_cost(const SeenCurve& seen, const ShapePrior& prior, const Matrix& precision, double variance,
                  const Shape& shape) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.ln_fid.size(); ++i) {
    const double off = seen.ln_fid[i] - log_fid(shape, seen.ln_images[i]);
    sum += seen.weights[i] * off * off / variance;
  }
  Shape from = shape;
  for (std::size_t d = 0; d < kShapeSize; ++d) from[d] -= prior.mean[d];
  return sum + precision.form(from);
}

double log_images_to(const Shape& shape, double fid) {
  const double above = fid - portable_exp(shape[0]);
  if (above <= 0) return std::numeric_limits<double>::infinity();
  const double power = portable_exp(shape[1]) / above - 1;
  if (power <= 0) return -std::numeric_limits<double>::infinity();
  return shape[2] + portable_log(power) / portable_exp(shape[3]);
}

void SeenCurve::add(double images, double fid) {
  const double at = portable_log(images / 1e6);
  weights.push_back(ln_images.empty() ? 1 : std::min(1.0, (at - ln_images.back()) / (2 * kCorrelation)));
  ln_images.push_back(at);
  ln_fid.push_back(portable_log(fid));
}

double SeenCurve::weight() const {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  return sum;
}

SeenCurve SeenCurve::from_its_end(double drift, double noise) const {
  SeenCurve out = *this;
  for (std::size_t i = 0; i < out.weights.size(); ++i)
    out.weights[i] *= noise / (noise + drift * drift * (ln_images.back() - ln_images[i]));
  return out;
}

ShapeFit fit_shape(const SeenCurve& seen, const ShapePrior& prior, double variance, const Shape& start) {
  const Matrix precision = inverse(prior.covariance);
  ShapeFit out;
  out.shape = start;
  double cost = shape_cost(seen, prior, precision, variance, out.shape);
  // Levenberg and Marquardt: steps are damped until they improve.
  double damping = 1e-3;
  for (int i = 0; i < kFitSteps; ++i) {
    const NormalEquations at = equations_at(seen, prior, precision, variance, out.shape);
    double gain = 0;
    for (; damping < 1e8; damping *= 5) {
      Matrix damped = at.curvature;
      for (std::size_t d = 0; d < kShapeSize; ++d) damped.at(d, d) *= 1 + damping;
      const std::vector<double> step = solve(cholesky(damped), at.gradient);
      Shape tried = out.shape;
      for (std::size_t d = 0; d < kShapeSize; ++d) tried[d] += std::clamp(step[d], -1.0, 1.0);
      const double then = shape_cost(seen, prior, precision, variance, tried);
      if (!(then <= cost)) continue;
      gain = cost - then;
      cost = then;
      out.shape = tried;
      break;
    }
    damping = std::max(damping / 5, 1e-9);
    if (gain < 1e-7) break;
  }
  out.covariance = inverse(equations_at(seen, prior, precision, variance, out.shape).curvature);
  for (std::size_t i = 0; i < seen.ln_fid.size(); ++i) {
    const CurvePoint at = curve_at(out.shape, seen.ln_images[i]);
    const double off = seen.ln_fid[i] - at.value;
    out.squares += seen.weights[i] * (off * off + out.covariance.form(at.gradient));
  }
  return out;
}

ShapeFit fit_shape_and_noise(const SeenCurve& seen, const ShapePrior& prior, double typical, double& variance) {
  Shape start = prior.mean;
  if (!seen.ln_fid.empty()) start[0] = std::min(start[0], *std::min_element(seen.ln_fid.begin(), seen.ln_fid.end()));
  variance = typical;
  ShapeFit out;
  for (int i = 0; i < 6; ++i) {
    out = fit_shape(seen, prior, variance, start);
    start = out.shape;
    variance = (kNoisePoints * typical + out.squares) / (kNoisePoints + seen.weight());
  }
  return out;
}

}  // namespace ganymede::calibration
