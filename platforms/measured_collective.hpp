#pragma once
// A measured curve of a collective: its time by size on some nodes of an instance type, as nccl-tests prints it. What
// was measured is the model; links only say how times go on beyond it.

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

  /// Measured over what the links give, between the sizes in proportion to the logarithms; beyond them that of the
  /// nearest one.
  double ratio(double bytes) const;
  /// The time of a size for which links alone give `links`. Between two measured sizes it is a latency and a bandwidth:
  /// a straight line. The links' shape takes part where sizes lie more than four times apart, up to half of it (a
  /// geometric mean), and is all of it where `follows_links()`. Beyond the sizes it is the links' time times ratio().
  Seconds time(double bytes, Seconds links) const;
  /// True if the links' shape predicts sizes that are left out twice as well as straight lines between the others.
  bool follows_links() const { return follows_links_; }
  /// The time of one of the sizes but the first and the last, predicted from all others.
  Seconds left_out(std::size_t index) const;

  /// Decides follows_links(); call it once `sizes` is complete.
  void compare_shapes();

 private:
  Seconds between(const Size& low, const Size& high, double bytes, Seconds links, bool follows) const;
  bool follows_links_ = false;
};

/// Reads the `fit` of an overlay, which people may have written too; the curve has no sizes if it holds none.
MeasuredCollective read_measured_collective(const Json& fit);

}  // namespace ganymede::platforms
