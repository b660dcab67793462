#pragma once
// How spot capacity comes and goes: platforms/spot/measured.json, embedded when the program is built. tools/fit_spot.py
// wrote it and says how it was fitted. A zone alternates between up (a node is to be had, and is kept) and down; zones
// differ in how long a node is kept and how often one is to be had.

#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede {

/// One zone's capacity of one kind of instance.
struct SpotZone {
  Seconds mean_up{0}, mean_down{0};
  double availability() const { return mean_up.si / (mean_up + mean_down).si; }
};

/// Zones of one class of GPU. Spreads are standard deviations of a logarithm and of a logit.
struct SpotClass {
  std::string name;  ///< a GPU's family, or "other": what nobody measured
  Seconds mean_up{0};
  double mean_up_spread = 0;
  double availability = 0;
  double availability_spread = 0;
  int zones = 0;  ///< that were measured; 0: assumed

  /// The zone that lies so many standard deviations above the middle, in both respects.
  SpotZone zone(double up_normal, double availability_normal) const;
};

struct SpotModel {
  double up_spread = 0, down_spread = 0;  ///< of the logarithm of one zone's durations, which are lognormal
  double correlation = 0;                 ///< between zones: of mean up-times and availability
  double together = 0;                    ///< chance that a node follows its zone's state, not one of its own
  std::vector<SpotClass> classes;         ///< sorted by name

  const SpotClass& of(std::string_view gpu_family) const;
  /// One of the zones that there may be.
  SpotZone draw(const SpotClass& of, RandomStream& random) const;
};

/// Parsed once, on first use.
const SpotModel& spot_model();

/// A lognormal duration of that mean.
Seconds draw_duration(Seconds mean, double spread, RandomStream& random);
/// What is left of such a duration at a moment that falls into it: long ones hold more moments.
Seconds draw_rest(Seconds mean, double spread, RandomStream& random);

}  // namespace ganymede
