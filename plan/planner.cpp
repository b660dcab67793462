#include "plan/planner.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "plan/choice.hpp"
#include "plan/search.hpp"

namespace ganymede::plan {

double objective_of(const Request& request, const PlannedRun& run) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  switch (request.objective) {
    case Objective::cost:
      return run.usd_at_worst;
    case Objective::time:
      return run.time_s.median;
    case Objective::carbon:
      return run.carbon_known ? run.kg_co2e.median : kNone;
    case Objective::risk_neutral:
      return run.usd_expected.value_or(kNone);
    case Objective::risk_averse:
      return run.usd_worst_tenth.value_or(kNone);
  }
  return kNone;
}

std::size_t Plan::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const PlannedRun& run) { return run.verdict == verdict; }));
}

std::string_view to_string(Effort effort) {
  constexpr std::string_view kNames[] = {"quick", "normal", "exhaustive"};
  return kNames[static_cast<std::size_t>(effort)];
}

namespace {

Plan search_once(const Request& request, const PlanOptions& options) {
  Search search(request, options);
  std::optional<std::size_t> best;
  sim::StepDistributionCache& steps = request.caches->steps;
  // Where much is known already, the first unit probably beats all others.
  for (std::size_t first = 0, count = options.at_most ? 1 : Search::kUnitsPerRound; first < search.size();
       first += std::exchange(count, Search::kUnitsPerRound)) {
    if ((options.stopped && options.stopped()) || (options.effort == Effort::quick && best)) break;
    std::vector<std::size_t> round;
    for (std::size_t unit = first; unit < std::min(search.size(), first + count); ++unit)
      if (!search.is_beaten(unit)) round.push_back(unit);
    // A process of its own would take longer than a single unit of which much is known, and what it finds out beside
    // its steps would be lost with it.
    if (options.at_most && round.size() == 1) {
      search.take(round.front(), search.evaluate(round.front()));
      (void)steps.take_new();  // no child has to send them back
      best = search.best();
      continue;
    }
    std::vector<bool> landed(round.size());
    const auto outcomes = run_children(
        round.size(), options.jobs,
        [&](std::size_t i) {
          Json done = {{"outcome", outcome_json(search.evaluate(round[i]))}};
          done["steps"] = steps.take_new();
          return done.dump();
        },
        [&](std::size_t finished) {
          if (options.progress) options.progress(first + finished, search.size());
        },
        ChildUse::reused, [&](std::size_t i, const ChildOutcome& /*outcome*/) { landed[i] = true; }, options.stopped);
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (!landed[i]) continue;
      rethrow(outcomes[i]);
      const JsonNode done = JsonNode::parse(outcomes[i].text, "a unit");
      search.take(round[i], read_outcome(done.child("outcome"), search.member_count(round[i])));
      steps.take_in(done.child("steps").value());  // units of later rounds need not simulate them again
    }
    if (const auto found = search.best(); found != best) {
      best = found;
      if (options.better) options.better(search.candidate(*best), search.run(*best));
    }
  }
  return search.plan();
}

}  // namespace

// Some of many candidates meet the goals in a few runs by luck. A choice that does not in more runs is none: what the
// search left out because of it is then looked at again.
Plan make_plan(const Request& request, const PlanOptions& options) {
  Plan plan = search_once(request, options);
  // To an FID each seed has several runs.
  if (request.quality || (!request.deadline && !request.budget)) return plan;
  while (plan.best && !(options.stopped && options.stopped())) {
    PlannedRun& run = plan.runs[*plan.best];
    if (run.risk == "none" || run.seeds >= kRunsForChance || run.probability_runs > 0) break;
    add_runs_for_chance(request, plan.candidates.all[*plan.best], run);
    judge(request, run);
    if (run.verdict == Verdict::meets) break;
    PlanOptions again = options;
    again.known = &plan;
    again.known_outcome = {};  // of other units
    Plan next = search_once(request, again);
    next.simulated += plan.simulated;
    plan = std::move(next);
  }
  return plan;
}

}  // namespace ganymede::plan
