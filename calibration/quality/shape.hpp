#pragma once
// The shape of a quality curve: FID against real images seen. A training starts at floor + drop, is half way down after
// `half` images, and then follows a power law towards the floor:
//
//   FID(x) = floor + drop / (1 + (x / half)^slope)

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace ganymede::calibration {

// Small symmetric matrices that are positive definite: covariances, precisions and normal equations of some dozens of
// unknowns. Results are the same bytes on every machine, which is why no library computes them.

class Matrix {
 public:
  explicit Matrix(std::size_t size = 0) : size_(size), values_(size * size) {}
  static Matrix diagonal(std::span<const double> values);

  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }

  /// Adds weight * v v^T.
  void add_outer(std::span<const double> v, double weight);
  void add(const Matrix& other, double weight = 1);
  std::vector<double> times(std::span<const double> v) const;
  /// v^T M v.
  double form(std::span<const double> v) const;

 private:
  std::size_t size_;
  std::vector<double> values_;
};

/// The lower triangle L with L L^T = m. `m` must be symmetric and positive definite.
Matrix cholesky(const Matrix& m);
/// Solves L L^T x = b.
std::vector<double> solve(const Matrix& lower, std::vector<double> b);
/// The inverse of a symmetric positive definite matrix.
Matrix inverse(const Matrix& m);

/// Natural logarithms of floor, drop, half (in millions of images) and slope.
inline constexpr std::size_t kShapeSize = 4;
using Shape = std::array<double, kShapeSize>;
inline constexpr std::array<const char*, kShapeSize> kShapeNames = {"floor", "drop", "half", "slope"};

/// ln FID after exp(ln_images) million images.
double log_fid(const Shape& shape, double ln_images);
/// Its derivatives by the shape's members.
Shape log_fid_gradient(const Shape& shape, double ln_images);
/// ln of the millions of images after which the curve is down at `fid`: infinite if that is at or below the floor, and
/// negative infinity if the curve starts below it.
double log_images_to(const Shape& shape, double fid);

/// Points of one training, with images in ascending order.
struct SeenCurve {
  std::vector<double> ln_images;  ///< of millions
  std::vector<double> ln_fid;
  /// Residuals of points that lie close together in ln(images) are alike, so that such points count as less than one.
  std::vector<double> weights;
  void add(double images, double fid);
  double weight() const;  ///< of all points
  /// The points as they count for where the curve goes after the last: one that lies t e-folds of the images before it
  /// is off by drift^2 t beside the variance `noise`.
  SeenCurve from_its_end(double drift, double noise) const;
};
/// e-folds of the images over which the residuals of a training stay alike: the integral of their autocorrelation over
/// the 32 trainings is 0.19; it falls from 0.8 to 0.1 within 0.4 (bench/README.md).
inline constexpr double kCorrelation = 0.2;

/// The expectation of a shape before its points are seen.
struct ShapePrior {
  Shape mean{};
  Matrix covariance{kShapeSize};
};

/// The negative logarithm of the posterior, twice; `precision` is the inverse of the prior's covariance.
double shape_cost(const SeenCurve& seen, const ShapePrior& prior, const Matrix& precision, double variance,
                  const Shape& shape);

/// The most probable shape under the prior and the points, and the covariance of the normal distribution that has the
/// posterior's curvature there (Laplace's approximation).
struct ShapeFit {
  Shape shape{};
  Matrix covariance{kShapeSize};
  double squares = 0;  ///< expected weighted sum of squared residuals
};

/// `variance` is that of a point's ln FID about the curve. `start` is where the search begins.
ShapeFit fit_shape(const SeenCurve& seen, const ShapePrior& prior, double variance, const Shape& start);

/// Pseudo-points with which a typical variance counts beside a training's own residuals.
inline constexpr double kNoisePoints = 4;
/// Fits shape and variance together; `typical` is the variance of most trainings. Sets `variance`.
ShapeFit fit_shape_and_noise(const SeenCurve& seen, const ShapePrior& prior, double typical, double& variance);

}  // namespace ganymede::calibration
