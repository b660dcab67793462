#pragma once
// Ups and downs of a zone that follow those of the other zones of its region. Shocks are random moments, each with a
// number: those of one kind may take capacity away, those of the other may bring it. A zone changes its state at a
// shock whose number is below the hazard (chance of a change per second) that its lognormal durations have at the age
// of its state. All zones of a region see the same shocks, and each sees some of its own. A zone by itself therefore
// behaves exactly as if it followed no other, whatever the other zones are and however many there are.

#include <array>

#include "platforms/spot.hpp"

namespace ganymede::platforms {

/// A zone of spot_model(), from the time 0 on.
class FollowingZone {
 public:
  /// `region` must be the same stream, in the same state, for all zones that follow each other; `own` a stream of the
  /// zone. The first change is the first after the time 0.
  FollowingZone(const SpotZone& zone, const RandomStream& region, const RandomStream& own);

  /// The state from 0 to the first change.
  bool up_first() const { return up_first_; }
  /// The time of the next change; ascending.
  Seconds next();

 private:
  struct Kind {
    double middle = 0, spread = 0;  // mean and standard deviation of the logarithm of the duration in seconds
    double most = 0;                // largest hazard, per second
  };
  void draw_shared();
  bool changes_at_next_shock();

  std::array<Kind, 2> kinds_;  // of durations down and up
  RandomStream region_, own_;
  bool up_ = false, up_first_ = false;
  double since_s_ = 0;                                 // when the present state began
  double shared_s_ = 0, shared_size_ = 0, own_s_ = 0;  // the next shocks: when, and 0 to 1
  bool shared_takes_ = false;                          // true: the next shared shock takes capacity away
};

}  // namespace ganymede::platforms
