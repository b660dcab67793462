#pragma once
// Small symmetric matrices that are positive definite: covariances, precisions and normal equations of some dozens of
// unknowns. Results are the same bytes on every machine, which is why no library computes them.

#include <cstddef>
#include <span>
#include <vector>

namespace ganymede::calibration {

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

}  // namespace ganymede::calibration
