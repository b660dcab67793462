#include "platforms/spot_shocks.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::platforms {
namespace {

/// Shared shocks of one kind per second. A zone whose hazard is above that follows the others a little less.
constexpr double kSharedRate = 10.0 / 3600;
/// Zones begin independently of each other so long before the run, by when they follow each other as they do later.
constexpr double kBefore_s = 100 * 3600.0;
constexpr double kLongest_s = 1e8;  // as of durations in spot.cpp

/// Probability that a standard normal variable is above z, divided by its density at z (Mills's ratio), within 1e-6.
double mills_ratio(double z) {
  constexpr double kSquareRootOf2Pi = 2.5066282746310002;
  const double inverse_density = kSquareRootOf2Pi * portable_exp(z * z / 2);
  if (z < -6) return inverse_density;
  if (z > 3) {  // Laplace's continued fraction
    double below = z;
    for (int term = 30; term >= 1; --term) below = z + term / below;
    return 1 / below;
  }
  // 1/2 less the integral of the density from 0: the density times z + z^3/3 + z^5/(3 5) + ...
  double term = z, sum = z;
  for (int odd = 3; std::abs(term) > 1e-12; odd += 2) sum += term *= z * z / odd;
  return inverse_density / 2 - sum;
}

double lognormal_hazard(double z, double middle, double spread) {
  return 1 / (mills_ratio(z) * spread * portable_exp(middle + spread * z));
}

}  // namespace

FollowingZone::FollowingZone(const SpotZone& zone, const RandomStream& region, const RandomStream& own)
    : region_(region), own_(own) {
  const SpotModel& model = spot_model();
  const auto kind = [](Seconds mean, double spread) {
    // The hazard is largest where 1 / (Mills's ratio) - z, which falls, is the spread.
    double low = -spread, high = 1 / spread;
    for (int i = 0; i < 50; ++i) {
      const double z = (low + high) / 2;
      (1 / mills_ratio(z) - z > spread ? low : high) = z;
    }
    const double middle = portable_log(mean.si) - spread * spread / 2;
    return Kind{middle, spread, lognormal_hazard(low, middle, spread)};
  };
  kinds_ = {kind(zone.mean_down, model.down_spread), kind(zone.mean_up, model.up_spread)};
  up_ = own_.uniform() < zone.availability();
  // At a moment at random, the state has lasted as long as it is going to last.
  const double age_s = draw_rest(up_ ? zone.mean_up : zone.mean_down, kinds_[up_].spread, own_).si;
  since_s_ = -kBefore_s - age_s;
  shared_s_ = own_s_ = -kBefore_s;
  draw_shared();
  own_s_ += own_.exponential() / kinds_[up_].most;
  while (std::min(shared_s_, own_s_) <= 0) changes_at_next_shock();
  up_first_ = up_;
}

Seconds FollowingZone::next() {
  while (!changes_at_next_shock()) continue;
  return Seconds{since_s_};
}

void FollowingZone::draw_shared() {
  shared_s_ += region_.exponential() / (2 * kSharedRate);
  const double drawn = 2 * region_.uniform();
  shared_takes_ = drawn >= 1;
  shared_size_ = shared_takes_ ? drawn - 1 : drawn;
}

/// Passes the next shock and returns whether the state changes.
bool FollowingZone::changes_at_next_shock() {
  const bool shared = shared_s_ <= own_s_;
  const double now_s = shared ? shared_s_ : own_s_, age_s = now_s - since_s_, follows = spot_model().follows;
  const Kind& kind = kinds_[up_];
  const auto hazard = [&] {
    return lognormal_hazard((portable_log(age_s) - kind.middle) / kind.spread, kind.middle, kind.spread);
  };
  bool changes = age_s > kLongest_s;
  if (shared) {
    const double size = shared_size_ * kSharedRate;
    changes = changes || (shared_takes_ == up_ && size < follows * kind.most && size < follows * hazard());
    draw_shared();
  } else {
    const double all = hazard();
    changes = changes || own_.uniform() * kind.most < all - std::min(follows * all, kSharedRate);
    own_s_ += own_.exponential() / kind.most;
  }
  if (!changes) return false;
  up_ = !up_;
  since_s_ = now_s;
  own_s_ = now_s + own_.exponential() / kinds_[up_].most;
  return true;
}

}  // namespace ganymede::platforms
