#pragma once
// A model of how spot capacity comes and goes. Its numbers are in platforms/spot/measured.json, which is embedded in
// the program; tools/fit_spot.py wrote it and says how it was fitted. A zone alternates between up (a node is granted
// and kept) and down. Zones differ in how long they stay up and in the share of time in which they are up.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {

/// The capacity of one zone for one kind of instance.
struct SpotZone {
  Seconds mean_up{0}, mean_down{0};
  double availability() const { return mean_up.si / (mean_up + mean_down).si; }
};

/// What a recording of a zone says of it.
struct SpotPast {
  Seconds up{0}, down{0};  ///< in all
  int times_up = 0;        ///< how often it was up, parts cut off at the recording's ends included
};

/// The distribution of zones for one class of GPU. The spread of mean up-times is the standard deviation of their
/// logarithm; the spread of the availability is the standard deviation of its logit.
struct SpotClass {
  std::string name;  ///< family of a GPU, or "other" for those that were not measured
  Seconds mean_up{0};
  double mean_up_spread = 0;
  double availability = 0;
  double availability_spread = 0;
  int zones = 0;  ///< zones that were measured; 0: the class is assumed

  /// The zone whose mean up-time (by its logarithm) and availability (by its logit) lie that many standard deviations
  /// above the median.
  SpotZone zone(double up_normal, double availability_normal) const;
};

struct SpotModel {
  double up_spread = 0, down_spread = 0;  ///< spreads of the logarithm of the lognormal durations of one zone
  double correlation = 0;                 ///< correlation over zones of mean up-time and availability
  /// Variances of what a recording with a single up-time says of the logarithm of a zone's mean up-time in the time
  /// after it, and of the logit of its availability; of one with n up-times they are 1/n of that.
  double up_noise = 0, availability_noise = 0;
  double follows = 0;   ///< share of the changes of a zone that come from shocks which its whole region sees
  double alike = 0;     ///< correlation of the standard normal variables that draw zones of one region; below 1
  double together = 0;  ///< probability that a node follows the state of its zone and not one of its own
  std::vector<SpotClass> classes;  ///< sorted by name

  /// The class of a family of GPUs; the class "other" if the family was not measured.
  const SpotClass& of(std::string_view gpu_family) const;
  /// The class of zones that a zone with this past may be: the mean of the class and of the past, each weighted by how
  /// little it varies (Bayes' rule for normal distributions).
  SpotClass given(const SpotClass& kind, const SpotPast& past) const;
  /// Draws a zone of the class from two independent standard normal variables.
  SpotZone draw(const SpotClass& kind, const std::array<double, 2>& normals) const;
};

/// The embedded model, parsed on first use.
const SpotModel& spot_model();

/// Draws a lognormal duration with that mean and that spread of its logarithm, limited to 1 s to 1e8 s.
Seconds draw_duration(Seconds mean, double spread, RandomStream& random);
/// Draws what is left of such a duration at a random moment. The moment falls into a long duration with a probability
/// in proportion to its length.
Seconds draw_rest(Seconds mean, double spread, RandomStream& random);

}  // namespace ganymede::platforms
