#pragma once
// Computation that keeps a processor as busy, and for as long, as the phases of a recorded step did.

#include <vector>

namespace ganymede::rehearsal {

/// Small products of matrices. How long one takes on a processor that does nothing else is measured once; a phase is
/// then a number of them, so that whatever takes the processor or its memory away makes the phase longer.
class BusyWork {
 public:
  BusyWork();

  double unit_s() const { return unit_s_; }  ///< of one product
  void compute_unit();

 private:
  std::vector<float> a_, b_, c_;
  double unit_s_ = 0;
};

}  // namespace ganymede::rehearsal
