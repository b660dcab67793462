#pragma once
// How wide the 90 % interval of a prediction is, by the evidence that it rests on.

#include <string>

#include "studies/machine.hpp"

namespace ganymede::studies {

/// The evidence behind a prediction of a step, and the parts of the step that are uncertain.
struct StepEvidence {
  LinkEvidence link = LinkEvidence::assumed;
  double link_factor = 1;  ///< on what links add to the width (rehearsed_links.hpp)
  bool eager = true;       ///< the executor, see calibration/worker_variation.hpp
  bool several_machines = false;
  double collectives = 0;  ///< share of the step that simulated collectives add
  double workers = 0;      ///< share of the step that workers who differ add
  double pauses = 0;       ///< share of the time that training pauses
  double repeat = 0;       ///< standard deviation of a published figure, relative
};

/// Half-width of the interval, as the logarithm of a factor on the time.
double half_width(const StepEvidence& evidence);
/// The same for the time of a collective alone.
double half_width_of_collective(LinkEvidence link, bool several_machines);

}  // namespace ganymede::studies
