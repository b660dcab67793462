#include "sim/cluster/likely_throughputs.hpp"

#include <cmath>
#include <numeric>

#include "common/random.hpp"

namespace ganymede::sim {
namespace {

/// 1 for equal sizes, less the more factors of two lie between them.
double nearness(double a, double b, double scale) {
  const double distance = portable_log(a / b) / portable_log(2) / scale;
  return portable_exp(-distance * distance / 2);
}

// Variances of logarithms, and factors of two over which they are alike, chosen by leaving out one measured row at a
// time (docs/cluster.md says with which error).
constexpr double kBatchScale = 2, kGpuScale = 1.5;

double covariance(const SoloPoint& a, const SoloPoint& b) {
  const bool gpu = a.gpu == b.gpu, model = a.model == b.model, place = gpu && a.spread == b.spread;
  const double batch = model ? nearness(a.batch, b.batch, kBatchScale) : 0;
  const double count = place ? nearness(a.gpus, b.gpus, kGpuScale) : 0;
  double sum = 4;                                      // what all rates have in common
  if (model) sum += 4 + batch;                         // a model's speed, by its batch
  sum += 0.4 * count;                                  // how GPUs scale
  if (gpu) sum += 0.9 * batch;                         // how a GPU suits a model
  sum += 0.15 * batch * count;                         // how a model scales there
  if (a.gpus == b.gpus && place) sum += 0.05 * batch;  // and its steps between numbers of GPUs
  return sum;
}
constexpr double noise_of(const SoloPoint& /*point*/) { return 1.5e-3; }

double covariance(const PairPoint& a, const PairPoint& b) {
  const bool gpu = a.gpu == b.gpu, beside = a.beside == b.beside, model = a.model == b.model;
  const double own = model ? nearness(a.batch, b.batch, kBatchScale) : 0;
  const double other = beside ? nearness(a.batch_beside, b.batch_beside, kBatchScale) : 0;
  double sum = 2 + 0.5 * own + 0.1 * other + 0.05 * own * other;
  if (model && beside) sum += 0.05;
  if (gpu) sum += 0.1 + 0.1 * own + 0.1 * other + 0.05 * own * other;
  return sum;
}
constexpr double noise_of(const PairPoint& /*point*/) { return 2e-3; }

/// Solves matrix x = right by Cholesky's decomposition; the symmetric, positive definite matrix is lost.
std::vector<double> solved(std::vector<std::vector<double>>& matrix, std::vector<double> right) {
  const std::size_t n = right.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) right[i] -= matrix[i][k] * right[k];
    right[i] /= matrix[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) right[i] -= matrix[k][i] * right[k];
    right[i] /= matrix[i][i];
  }
  return right;
}

}  // namespace

template <class Point>
LikelyValues<Point>::LikelyValues(std::vector<Point> points, const std::vector<double>& values)
    : points_(std::move(points)) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(portable_log(value));
  mean_ = logs.empty() ? 0 : std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  std::vector<std::vector<double>> matrix;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    logs[i] -= mean_;
    matrix.emplace_back();
    for (std::size_t j = 0; j <= i; ++j) matrix[i].push_back(covariance(points_[i], points_[j]));
    matrix[i][i] += noise_of(points_[i]);
  }
  weights_ = solved(matrix, std::move(logs));
}

template <class Point>
double LikelyValues<Point>::at(const Point& point) const {
  double sum = mean_;
  for (std::size_t i = 0; i < points_.size(); ++i) sum += weights_[i] * covariance(point, points_[i]);
  return portable_exp(sum);
}

template class LikelyValues<SoloPoint>;
template class LikelyValues<PairPoint>;

}  // namespace ganymede::sim
