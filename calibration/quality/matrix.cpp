#include "calibration/quality/matrix.hpp"

#include <cassert>
#include <cmath>

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

}  // namespace ganymede::calibration
