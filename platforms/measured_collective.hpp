#pragma once
// A measured curve of a collective: its time by size on some nodes of an instance type, as nccl-tests prints it. What
// was measured is the model; links only say how times go on beyond it.

#include <limits>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {

struct MeasuredCollective {
  struct Size {
    double bytes = 0;
    Seconds measured;
    Seconds links;  ///< what the links that were fitted to the curve alone give
  };
  std::string instance;
  int nodes = 1, gpus_per_node = 1;
  std::string collective, scheme;  ///< as users name them
  std::vector<Size> sizes;         ///< at least two, by ascending bytes; times are above zero
  /// |ln(measured / expected)| of the first and the last size, the larger of both, where expected is what the machine
  /// was stated to take before anything was fitted; by default nothing is known of it.
  double stated_off = std::numeric_limits<double>::infinity();
  static constexpr double kKnown = 0.8;  ///< below it the machine was known

  /// Measured over what the links give, between the sizes in proportion to the logarithms; beyond them that of the
  /// nearest one.
  double ratio(double bytes) const;
  /// The time of a size for which links alone give `links`. Between two measured sizes it is a latency and a bandwidth,
  /// a straight line, of which the links' shape takes a share (a geometric mean) that grows with the gap, and is all of
  /// it where the links predict sizes that are left out twice as well as lines between the others. Beyond the sizes it
  /// is the links' time times ratio().
  Seconds time(double bytes, Seconds links) const;
  /// The time of one of the sizes but the first and the last, predicted from all others.
  Seconds left_out(std::size_t index) const;

  /// Compares the links' shape with lines; call it once `sizes` is complete.
  void compare_shapes();

 private:
  Seconds between(const Size& low, const Size& high, double bytes, Seconds links, bool follows) const;

  bool follows_links_ = false;
};

/// Reads the `fit` of an overlay, which people may have written too; the curve has no sizes if it holds none.
MeasuredCollective read_measured_collective(const Json& fit);

}  // namespace ganymede::platforms
