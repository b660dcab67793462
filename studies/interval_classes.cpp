#include "studies/interval_classes.hpp"

#include <cmath>

#include "calibration/statistics.hpp"

namespace ganymede::studies {
namespace {

constexpr double kNormal90 = 1.6449;  // 95 % quantile of the standard normal distribution: half-width of 90 %

// `python3 bench/interval_widths.py` fits the narrowest widths of this form that hold 90 % of the cells of an executor
// on one machine or on several in the published studies, and leaves out each study in turn. What is left with little
// communication is wider for graph executors, whose constants rest on two studies only. There the floors are wider than
// fitted, so that each class of evidence with 20 cells or more holds 85 % of its cells, too.
constexpr double kWorkers = 1.3;  // on the share of workers that differ
constexpr double kEagerOneMachine = 0.02;
constexpr double kGraphOneMachine = 0.11;
constexpr double kEagerSeveralMachines = 0.05;
// Over a network that a study assumes. MXNet on four machines takes tens of milliseconds a step beyond its port, which
// nothing explains yet. Over a data sheet's network steps are as on one machine (parameter_servers_p2).
constexpr double kGraphAssumedNetwork = 0.35;
constexpr double kPauses = 0.5;  // an assumption: pauses are known for evaluations, not for trainings

// On the share of collectives. bench/nccl_logs: a curve that is fitted to two sizes of a log is 5 to 30 % off between
// them; a curve from data sheets alone, or of a network that somebody assumes, is off by a factor of 2 as often as not.
double collectives_error(LinkEvidence link) {
  return link == LinkEvidence::measured || link == LinkEvidence::fitted ? 0.3 : 1.0;
}

double floor_of(const StepEvidence& evidence) {
  if (evidence.several_machines && evidence.eager) return kEagerSeveralMachines;
  if (evidence.several_machines && evidence.link == LinkEvidence::assumed) return kGraphAssumedNetwork;
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

// Conformal prediction over sources (Dunn, Wasserman and Ramdas 2022, pooling distributions): the 90 % quantile of
// |ln(predicted / measured)| from 1 MiB on, in which each source of public logs counts once, whatever its sizes, and
// one more that is not known is as far off as can be. 22 sources on one machine and 27 on several; a width that has not
// seen a source holds 94 % of its sizes with fitted links and 92 % without, where 0.26, 0.37, 0.48 and 0.72 would hold
// 90 % of all sizes. An imported log is itself the model: its sizes left out lie within 0.11 and 0.19.
double half_width_of_collective(LinkEvidence link, bool several_machines) {
  if (link == LinkEvidence::measured || link == LinkEvidence::fitted) return several_machines ? 0.48 : 0.30;
  return several_machines ? 1.20 : 0.72;
}

}  // namespace ganymede::studies
