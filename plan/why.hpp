#pragma once
// What the choice of a plan hangs on: how far a price, the step time, interruptions or the time to boot must rise until
// something else should be rented.

#include <functional>

#include "common/json_value.hpp"
#include "plan/planner.hpp"
#include "plan/what_if.hpp"

namespace ganymede::plan {

/// What became of raising one assumption.
struct Sensitivity {
  Assumption assumption = Assumption::price;
  double now = 0;                   ///< its value in the plan, in the unit of Assumption
  double tried = 0;                 ///< the highest value that was tried
  std::optional<double> threshold;  ///< the lowest value found at which something else is chosen; none up to `tried`
  /// The row of a plan that is chosen at the threshold; null if nothing meets the goals there.
  OrderedJson next;
  std::string without;  ///< not empty: why the assumption has no meaning here
};

/// Raises each assumption by itself until the choice is another one. A choice is what is rented: instance, number,
/// region and market; another batch, scheme, policy or checkpoint interval on the same nodes is none.
///
/// It is raised in steps, and the first step that changes the choice is halved until both ends of it differ by less
/// than 0.02 % (boot: one second). But where the choice is compared with others whose objective is known, prices, step
/// times and boots are raised at once to where a line says that it is as high, or to the highest value if it does not
/// grow: the change found is then one that no change between need precede. What candidates take and cost at the present
/// values is found out once for all assumptions, also of those that the plan left out because only affected ones beat
/// them. At each value the candidates that rent the same as the choice are simulated again, and then those that it
/// affects and that may be better: a higher value makes none better than nine tenths of what it was, but by luck. What
/// is chosen at the threshold is then planned among all candidates so, which tests compare with plans that know
/// nothing. `progress` is called with the number of assumptions that are done.
std::vector<Sensitivity> why(const KnownPlan& known, int jobs, const std::function<void(std::size_t)>& progress = {});

/// The answers as `ganymede.why/1`. `file` is the plan's content.
std::string why_json(const KnownPlan& known, const std::vector<Sensitivity>& answers, const Json& file);

}  // namespace ganymede::plan
