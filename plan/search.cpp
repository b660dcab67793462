#include "plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/errors.hpp"
#include "plan/bounds.hpp"
#include "plan/choice.hpp"
#include "plan/dearer_regions.hpp"

namespace ganymede::plan {
namespace {

void raise(RunsAtLeast& least, const RunsAtLeast& other) {
  least = {std::max(least.time_s, other.time_s), std::max(least.usd_at_worst, other.usd_at_worst)};
}

}  // namespace

Search::Search(const Request& request, PlanOptions options)
    : request_(request),
      options_(std::move(options)),
      scenarios_(request),
      front_(request, options_.effort == Effort::exhaustive, options_.at_most, options_.all_at_most) {
  const bool exhaustive = options_.effort == Effort::exhaustive;
  plan_.effort = options_.effort;
  plan_.candidates = enumerate(request, exhaustive, options_.families);
  if (options_.known) plan_.runs = options_.known->runs;
  plan_.runs.resize(plan_.candidates.all.size());
  left_out_.resize(plan_.runs.size());
  if (!exhaustive) {
    left_out_ = in_dearer_region(request, plan_.candidates, options_.only);
    const std::vector<bool> slower = with_slower_batch(request, plan_.candidates, options_.only);
    for (std::size_t i = 0; i < slower.size(); ++i) left_out_[i] = left_out_[i] || slower[i];
  }
  for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
    if (plan_.runs[i].simulated()) plan_.candidates.all[i].scheme = options_.known->candidates.all[i].scheme;
    const RunsAtLeast& least = plan_.runs[i].at_least;
    plan_.candidates.all[i].known = {least.time_s, 0, least.usd_at_worst};
    if (options_.only && !options_.only(candidate(i))) plan_.runs[i].verdict = Verdict::impossible;
    if (plan_.runs[i].verdict == Verdict::meets) take_in(i);
  }
  rule_out_candidates();
  make_units();
}

void Search::rule_out_candidates() {
  if (plan_.candidates.all.empty()) return;
  std::vector<bool> open(plan_.runs.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = is_open(i);
  const calibration::QualityGoal* goal = nullptr;
  if (request_.quality) {
    const JsonNode workload = scenarios_.parts(candidate(0)).sections.at("workload");
    goal = &request_.caches->inputs.quality(workload.child("quality"), request_.trace.model).goal;
  }
  rule_out(request_, plan_.candidates, goal, open, plan_.runs);
}

void Search::make_units() {
  const auto& groups = plan_.candidates.groups;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const bool at_risk : {false, true}) {
      Unit unit{at_risk, 0, g, {}, false};
      for (const std::size_t i : groups[g].members) {
        if (!is_open(i) || candidate(i).at_risk() != at_risk) continue;
        const double known = options_.at_most ? least_objective(request_, candidate(i).known) : 0;
        const double bound = std::max(known, least_objective(request_, candidate(i).bounds));
        if (unit.members.empty() || bound < unit.least) unit.late = at_risk && known == 0;
        unit.least = unit.members.empty() ? bound : std::min(unit.least, bound);
        unit.members.push_back(i);
      }
      if (!unit.members.empty()) units_.push_back(std::move(unit));
    }
  std::sort(units_.begin(), units_.end());
}

std::string Search::label(std::size_t unit) const {
  const std::vector<std::size_t>& members = units_[unit].members;
  const PlanCandidate& first = candidate(members.front());
  const std::string label =
      fmt::format("{}, batch {}", label_of(request_, first), request_.batches[first.batch].per_gpu);
  return members.size() == 1 ? label : fmt::format("{} and {} more like it", label, members.size() - 1);
}

bool Search::is_beaten(std::size_t unit) const {
  const std::vector<std::size_t>& members = units_[unit].members;
  return std::all_of(members.begin(), members.end(), [&](std::size_t i) {
    return front_.beats(candidate(i), candidate(i).bounds) || front_.beats(candidate(i), candidate(i).known);
  });
}

UnitOutcome Search::evaluate(std::size_t unit) {
  std::vector<PlanCandidate> members;
  for (const std::size_t i : units_[unit].members) members.push_back(candidate(i));
  if (is_beaten(unit)) return {{}, {}, 0, std::vector<PlannedRun>(members.size())};
  if (options_.known_outcome)
    if (const auto known = options_.known_outcome(unit); known && !known->scheme.empty())
      if (auto repeated = repeat_group(request_, members, front_, *known)) return *std::move(repeated);
  return evaluate_group(request_, members, front_, scenarios_);
}

void Search::take(std::size_t unit, const UnitOutcome& outcome) {
  units_[unit].taken = true;
  const auto& [late, least, group, members, taken] = units_[unit];
  // The other unit of the group need not search for the fastest scheme again.
  if (!outcome.scheme.empty())
    for (const std::size_t i : plan_.candidates.groups[group].members) plan_.candidates.all[i].scheme = outcome.scheme;
  for (std::size_t place = 0; place < members.size(); ++place) {
    PlannedRun& run = plan_.runs[members[place]];
    const RunsAtLeast before = run.at_least;
    run = outcome.runs[place];
    raise(run.at_least, before);
    if (run.invalid && invalid_.empty()) invalid_ = run.reason;
    if (run.verdict != Verdict::misses) continue;
    ++plan_.simulated;
    judge(request_, run);
    if (run.verdict == Verdict::meets) take_in(members[place]);
  }
}

void Search::take_in(std::size_t i) {
  front_.take_in(candidate(i), plan_.runs[i]);
  if (std::isfinite(objective_of(request_, plan_.runs[i])) && is_better(request_, plan_, i, best_)) best_ = i;
}

Plan Search::plan() {
  // If no candidate has a valid scenario, the request is wrong.
  if (plan_.simulated == 0 && !invalid_.empty() && !options_.at_most) throw ConfigError(invalid_);
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    if (!units_[unit].taken && !is_beaten(unit)) plan_.untried += units_[unit].members.size();
  for (std::size_t i = 0; i < left_out_.size(); ++i)
    if (is_open(i)) raise(plan_.runs[i].at_least, {candidate(i).bounds.time_s, candidate(i).bounds.usd_at_worst});
  choose_answer(request_, plan_);
  return std::move(plan_);
}

}  // namespace ganymede::plan
