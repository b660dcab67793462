#include "studies/interval_classes.hpp"

#include <cmath>

#include "calibration/statistics.hpp"

namespace ganymede::studies {
namespace {

constexpr double kNormal90 = 1.6449;  // 95 % quantile of the standard normal distribution: half-width of 90 %

// `python3 bench/interval_widths.py` fits the narrowest widths of this form that hold 90 % of the cells of an executor
// on one machine or on several in the published studies, and leaves out each study in turn. What is left with little
// communication is wider for graph executors, whose constants rest on two studies only. There the floors are wider than
// fitted (0.09 and 0.25), so that each class of evidence with 20 cells or more holds 85 % of its cells, too.
constexpr double kWorkers = 1.3;  // on the share of workers that differ
constexpr double kEagerOneMachine = 0.02;
constexpr double kGraphOneMachine = 0.11;
constexpr double kEagerSeveralMachines = 0.165;
// MXNet on four machines takes tens of milliseconds a step beyond its port, which nothing explains yet.
constexpr double kGraphSeveralMachines = 0.35;
constexpr double kPauses = 0.5;  // an assumption: pauses are known for evaluations, not for trainings

// On the share of collectives. bench/nccl_logs: a curve that is fitted to two sizes of a log is 5 to 30 % off between
// them; a curve from data sheets alone, or of a network that somebody assumes, is off by a factor of 2 as often as not.
double collectives_error(LinkEvidence link) {
  return link == LinkEvidence::measured || link == LinkEvidence::fitted ? 0.3 : 1.0;
}

double floor_of(const StepEvidence& evidence) {
  if (evidence.several_machines) return evidence.eager ? kEagerSeveralMachines : kGraphSeveralMachines;
  return evidence.eager ? kEagerOneMachine : kGraphOneMachine;
}

}  // namespace

double half_width(const StepEvidence& evidence) {
  return calibration::in_quadrature(
      calibration::in_quadrature(kNormal90 * std::sqrt(2.0) * evidence.repeat, kPauses * evidence.pauses),
      calibration::in_quadrature(
          calibration::in_quadrature(kWorkers * evidence.workers,
                                     evidence.link_factor * collectives_error(evidence.link) * evidence.collectives),
          floor_of(evidence)));
}

double half_width_of_collective(LinkEvidence link, bool several_machines) {
  return collectives_error(link) * (several_machines ? 0.7 : 0.5);
}

}  // namespace ganymede::studies
