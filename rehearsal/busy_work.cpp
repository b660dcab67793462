#include "rehearsal/busy_work.hpp"

#include <algorithm>
#include <limits>

#include "rehearsal/clock.hpp"
#include "rehearsal/host_connections.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kSide = 48;  // of a matrix: a product takes some tens of microseconds

}  // namespace

BusyWork::BusyWork() : a_(kSide * kSide, 0.5F), b_(kSide * kSide, 0.25F), c_(kSide * kSide, 0) {
  const AmongOthers usual;
  constexpr int kTries = 20, kUnits = 50;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double begin = machine_time();
    for (int unit = 0; unit < kUnits; ++unit) compute_unit();
    least = std::min(least, (machine_time() - begin) / kUnits);
  }
  unit_s_ = least;
}

void BusyWork::compute_unit() {
  for (std::size_t row = 0; row < kSide; ++row)
    for (std::size_t k = 0; k < kSide; ++k) {
      const float factor = a_[row * kSide + k];
      for (std::size_t column = 0; column < kSide; ++column)
        c_[row * kSide + column] += factor * b_[k * kSide + column];
    }
  // The next product depends on this one, and no number grows without bound.
  constexpr float kMost = 1e6F;
  if (c_[0] > kMost) std::fill(c_.begin(), c_.end(), 0.0F);
  a_[0] = 0.5F + c_[0] / (4 * kMost);
}

}  // namespace ganymede::rehearsal
