#include "policies/schedulers/fair_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ganymede::policies {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Solves matrix x = right by elimination with pivots; both are lost.
Vector solved(Matrix& matrix, Vector right) {
  const std::size_t n = right.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t k = i + 1; k < n; ++k)
      if (std::abs(matrix[k][i]) > std::abs(matrix[pivot][i])) pivot = k;
    std::swap(matrix[i], matrix[pivot]);
    std::swap(right[i], right[pivot]);
    for (std::size_t k = i + 1; k < n; ++k) {
      const double factor = matrix[k][i] / matrix[i][i];
      for (std::size_t j = i; j < n; ++j) matrix[k][j] -= factor * matrix[i][j];
      right[k] -= factor * right[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) right[i] -= matrix[i][j] * right[j];
    right[i] /= matrix[i][i];
  }
  return right;
}

/// The inverse of (diagonal + a a' + b b') times a vector, by the formula of Sherman and Morrison, twice.
class DiagonalAndTwo {
 public:
  DiagonalAndTwo(Vector diagonal, Vector a, Vector b) : diagonal_(std::move(diagonal)), a_(std::move(a)) {
    for (double& value : diagonal_) value = 1 / value;
    a_inverse_ = diagonal_times(a_);
    a_scale_ = 1 / (1 + dot(a_, a_inverse_));
    b_inverse_ = without_b(b);
    b_scale_ = 1 / (1 + dot(b, b_inverse_));
    b_ = std::move(b);
  }
  Vector times(const Vector& right) const {
    Vector out = without_b(right);
    const double factor = dot(b_inverse_, right) * b_scale_;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= factor * b_inverse_[i];
    return out;
  }

 private:
  Vector diagonal_times(Vector right) const {
    for (std::size_t i = 0; i < right.size(); ++i) right[i] *= diagonal_[i];
    return right;
  }
  Vector without_b(const Vector& right) const {
    Vector out = diagonal_times(right);
    const double factor = dot(a_inverse_, right) * a_scale_;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= factor * a_inverse_[i];
    return out;
  }
  Vector diagonal_, a_, b_, a_inverse_, b_inverse_;
  double a_scale_ = 0, b_scale_ = 0;
};

/// The logarithmic barrier of the linear program "level as large as possible": shares above 0, what is left of each
/// job's time, what its worth exceeds the level by, and what is left of each pool.
class CentralPath {
 public:
  /// Every job is worth something somewhere.
  explicit CentralPath(const SharedPools& shared) : shared_(shared), jobs_(shared.gpus.size()) {
    double asked = 0;
    for (const double gpus : shared.gpus) asked += gpus;
    double start = 0.5 / static_cast<double>(shared.pools.size());
    for (const double pool : shared.pools) start = std::min(start, 0.5 * pool / asked);
    for (std::size_t j = 0; j < jobs_; ++j) {
      shares_.emplace_back(shared.pools.size(), 0);
      double worth = 0;
      for (std::size_t p = 0; p < shared.pools.size(); ++p)
        if (shared.worth[j][p] > 0) shares_[j][p] = start, worth += start * shared.worth[j][p];
      level_ = j == 0 ? worth / 2 : std::min(level_, worth / 2);
    }
  }

  Matrix follow() {
    // The level at the centre for a weight is less than the best by at most the number of constraints over the weight.
    const double constraints = static_cast<double>(jobs_ * (shared_.pools.size() + 2) + shared_.pools.size());
    constexpr double kGap = 1e-6, kGrowth = 10;
    constexpr int kMostSteps = 50;  // for one weight: far more than Newton's method needs
    for (double weight = 1 / level_;; weight *= kGrowth) {
      for (int step = 0; step < kMostSteps && newton(weight) > kCentred; ++step) {
      }
      if (constraints / weight < kGap * level_) return std::move(shares_);
    }
  }

 private:
  static constexpr double kCentred = 1e-6;  // the square of a step that is not worth going

  /// A step of all unknowns.
  struct Step {
    Matrix shares;
    double level = 0;
  };

  /// Goes one step of Newton's method, or as much of it as stays inside and is not far beyond the best point on its
  /// way; returns the square of the step's length in the barrier's own measure.
  double newton(double weight) {
    const Step step = newton_step(weight);
    const double length2 = slope(step, 0, weight);
    if (!(length2 > kCentred)) return length2;
    double part = 1;
    while (slope(step, part, weight) < -0.1 * length2) part /= 2;
    for (std::size_t j = 0; j < jobs_; ++j)
      for (std::size_t p = 0; p < shared_.pools.size(); ++p) shares_[j][p] += part * step.shares[j][p];
    level_ += part * step.level;
    return length2;
  }

  /// How fast the barrier rises along a step after `part` of it; far below 0 outside of the constraints.
  double slope(const Step& step, double part, double weight) const {
    double sum = weight * step.level;
    bool inside = true;
    const auto add = [&](double from, double by) {
      const double value = from + part * by;
      inside = inside && value > 0;
      sum += by / value;
    };
    Vector room = shared_.pools, room_step(room.size(), 0);
    for (std::size_t j = 0; j < jobs_; ++j) {
      double idle = 1, idle_step = 0, excess = -level_, excess_step = -step.level;
      for (std::size_t p = 0; p < room.size(); ++p) {
        const double worth = shared_.worth[j][p], share = shares_[j][p], by = step.shares[j][p];
        if (worth <= 0) continue;
        add(share, by);
        idle -= share, idle_step -= by;
        excess += worth * share, excess_step += worth * by;
        room[p] -= shared_.gpus[j] * share, room_step[p] -= shared_.gpus[j] * by;
      }
      add(idle, idle_step);
      add(excess, excess_step);
    }
    for (std::size_t p = 0; p < room.size(); ++p) add(room[p], room_step[p]);
    return inside ? sum : -std::numeric_limits<double>::infinity();
  }

  /// Newton's step. Pools couple the jobs, as does the level: without them each job's step is its own.
  Step newton_step(double weight) const {
    const std::size_t pools = shared_.pools.size();
    Vector room = shared_.pools;
    for (std::size_t j = 0; j < jobs_; ++j)
      for (std::size_t p = 0; p < pools; ++p) room[p] -= shared_.gpus[j] * shares_[j][p];
    // The unknowns that remain when the jobs' own steps are eliminated: a price of each pool, and the level's step.
    Matrix outer(pools + 1, Vector(pools + 1, 0));
    Vector outer_right(pools + 1, 0);
    for (std::size_t p = 0; p < pools; ++p) outer[p][p] = room[p] * room[p];
    outer_right[pools] = weight;
    std::vector<DiagonalAndTwo> own;
    Matrix gradients, pulls;
    for (std::size_t j = 0; j < jobs_; ++j) {
      const Vector &worth = shared_.worth[j], &share = shares_[j];
      double idle = 1;
      for (const double part : share) idle -= part;
      const double excess = dot(worth, share) - level_;
      Vector diagonal(pools, 1), a(pools, 0), b(pools, 0), gradient(pools, 0), pull(pools, 0);
      for (std::size_t p = 0; p < pools; ++p) {
        if (worth[p] <= 0) continue;  // its step stays 0
        diagonal[p] = 1 / (share[p] * share[p]);
        a[p] = 1 / idle;
        b[p] = worth[p] / excess;
        gradient[p] = 1 / share[p] - 1 / idle + worth[p] / excess - shared_.gpus[j] / room[p];
        pull[p] = worth[p] / (excess * excess);
      }
      own.emplace_back(std::move(diagonal), std::move(a), std::move(b));
      const Vector by_gradient = own[j].times(gradient), by_level = own[j].times(pull);
      outer[pools][pools] += 1 / (excess * excess) - dot(pull, by_level);
      outer_right[pools] += dot(pull, by_gradient) - 1 / excess;
      for (std::size_t p = 0; p < pools; ++p) {
        if (worth[p] <= 0) continue;
        Vector unit(pools, 0);
        unit[p] = shared_.gpus[j];
        const Vector by_price = own[j].times(unit);
        for (std::size_t q = 0; q < pools; ++q) outer[q][p] += shared_.gpus[j] * (worth[q] > 0 ? by_price[q] : 0);
        outer[pools][p] += dot(pull, by_price);
        outer[p][pools] -= shared_.gpus[j] * by_level[p];
        outer_right[p] += shared_.gpus[j] * by_gradient[p];
      }
      gradients.push_back(std::move(gradient));
      pulls.push_back(std::move(pull));
    }
    const Vector inner = solved(outer, outer_right);
    Step step{{}, inner[pools]};
    for (std::size_t j = 0; j < jobs_; ++j) {
      Vector right = gradients[j];
      for (std::size_t p = 0; p < pools; ++p)
        right[p] = shared_.worth[j][p] > 0 ? right[p] + pulls[j][p] * step.level - shared_.gpus[j] * inner[p] : 0;
      step.shares.push_back(own[j].times(right));
    }
    return step;
  }

  const SharedPools& shared_;
  std::size_t jobs_;
  Matrix shares_;
  double level_ = 0;
};

}  // namespace

std::vector<std::vector<double>> fair_shares(const SharedPools& shared) {
  Matrix out(shared.gpus.size(), Vector(shared.pools.size(), 0));
  SharedPools some{{}, {}, shared.pools};
  std::vector<std::size_t> which;
  for (std::size_t j = 0; j < shared.gpus.size(); ++j) {
    if (!(*std::max_element(shared.worth[j].begin(), shared.worth[j].end()) > 0)) continue;
    which.push_back(j);
    some.gpus.push_back(shared.gpus[j]);
    some.worth.push_back(shared.worth[j]);
  }
  if (which.empty()) return out;
  const Matrix shares = CentralPath(some).follow();
  for (std::size_t k = 0; k < which.size(); ++k) out[which[k]] = shares[k];
  return out;
}

}  // namespace ganymede::policies
