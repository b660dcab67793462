#pragma once
// How wide the 90 % interval of a prediction is, by the evidence that it rests on. Simulated runs, plans and studies
// take their widths from here.

#include <string_view>

namespace ganymede::calibration {

/// Where the bandwidths and latencies of a machine's links come from, best first.
enum class LinkEvidence { measured, fitted, datasheet, assumed };
std::string_view to_string(
    LinkEvidence evidence);  ///< "measured link", "fitted log", "datasheet link", "assumed network"
/// The evidence that Platform::fabric_label() names: "measured", "datasheet" or "assumed", which is what all else
/// means.
LinkEvidence link_evidence(std::string_view label);

/// The evidence behind a prediction of a step of several workers, and the parts of the step that are uncertain.
struct StepEvidence {
  LinkEvidence link = LinkEvidence::assumed;
  bool through_host = false;  ///< GPUs of a node exchange through host memory
  double link_factor = 1;     ///< on what links add to the width (studies/rehearsed_study.hpp)
  bool eager = true;          ///< the executor, see worker_variation.hpp
  bool own_program = false;   ///< it trains as ours does, whose exchange is the simulated one
  bool several_machines = false;
  bool servers = false;    ///< gradients go to parameter servers and not into an all-reduce
  double collectives = 0;  ///< share of the step that simulated collectives add
  double workers = 0;      ///< share of the step that workers who differ add
  double pauses = 0;       ///< share of the time that training pauses
  double repeat = 0;       ///< standard deviation of a published figure, relative
};

/// Half-width of the interval, as the logarithm of a factor on the time.
double half_width(const StepEvidence& evidence);
/// What the links add to it: as the logarithm of a factor on the step's time.
double half_width_of_links(const StepEvidence& evidence);
/// The same for the time of a collective alone.
double half_width_of_collective(LinkEvidence link, bool several_machines, bool through_host = false);

}  // namespace ganymede::calibration
