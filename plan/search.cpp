#include "plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/errors.hpp"
#include "plan/bounds.hpp"
#include "plan/choice.hpp"
#include "plan/dearer_regions.hpp"

namespace ganymede::plan {
namespace {

bool is_risk(Objective objective) {
  return objective == Objective::risk_neutral || objective == Objective::risk_averse;
}

}  // namespace

Search::Search(const Request& request, PlanOptions options)
    : request_(request), options_(std::move(options)), scenarios_(request) {
  plan_.candidates = enumerate(request, options_.exhaustive);
  if (options_.known) plan_.runs = options_.known->runs;
  plan_.runs.resize(plan_.candidates.all.size());
  dearer_ = options_.exhaustive ? std::vector<bool>(plan_.runs.size())
                                : in_dearer_region(request, plan_.candidates, options_.only);
  least_ = options_.at_most;
  for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
    if (plan_.runs[i].simulated()) plan_.candidates.all[i].scheme = options_.known->candidates.all[i].scheme;
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
      Unit unit{0, g, at_risk, {}};
      for (const std::size_t i : groups[g].members) {
        if (!is_open(i) || candidate(i).at_risk() != at_risk) continue;
        const double bound = objective_of(candidate(i).bounds);
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

/// The bound of what the request minimizes. Carbon has no bound, so the search is then ordered by cost. Each run costs
/// at least the bound in the median. So its mean, in which half of the outcomes are above the median, is at least half
/// of the bound, and the mean of the worst tenth at least the whole. To an FID, that holds for the half of the runs
/// that need more images than the median.
double Search::objective_of(const Bounds& bounds) const {
  return request_.objective == Objective::time           ? bounds.time_s
         : request_.objective == Objective::risk_neutral ? (request_.quality ? 0.25 : 0.5) * bounds.usd_at_worst
                                                         : bounds.usd_at_worst;
}

/// True if a simulated candidate is strictly faster and strictly cheaper than the bounds, and so than any run of this
/// candidate. If this candidate's nodes cannot be taken back, it must also be worse than the best one of known risk,
/// because the plan names that one too.
bool Search::is_beaten(const PlanCandidate& candidate, const Bounds& bounds) const {
  if (options_.exhaustive || request_.objective == Objective::carbon) return false;
  const double objective = objective_of(bounds);
  if (options_.at_most) return *least_ < objective;
  if (is_risk(request_.objective) && !(least_ && *least_ < objective)) return false;
  if (!candidate.at_risk() && !(least_of_known_risk_ && *least_of_known_risk_ < objective)) return false;
  return std::any_of(front_.begin(), front_.end(), [&](std::size_t other) {
    return plan_.runs[other].time_s.median < bounds.time_s && plan_.runs[other].usd_at_worst < bounds.usd_at_worst;
  });
}

bool Search::is_beaten(std::size_t unit) const {
  const std::vector<std::size_t>& members = units_[unit].members;
  return std::all_of(members.begin(), members.end(),
                     [&](std::size_t i) { return is_beaten(candidate(i), candidate(i).bounds); });
}

UnitOutcome Search::evaluate(std::size_t unit) {
  std::vector<PlanCandidate> members;
  for (const std::size_t i : units_[unit].members) members.push_back(candidate(i));
  if (is_beaten(unit)) return {{}, {}, 0, std::vector<PlannedRun>(members.size())};
  const IsBeaten beaten = [&](const PlanCandidate& one, const Bounds& bounds) { return is_beaten(one, bounds); };
  if (options_.known_outcome)
    if (const auto known = options_.known_outcome(unit); known && !known->scheme.empty())
      if (auto repeated = repeat_group(request_, members, beaten, *known)) return *std::move(repeated);
  return evaluate_group(request_, members, beaten, scenarios_);
}

void Search::take(std::size_t unit, const UnitOutcome& outcome) {
  const auto& [least, group, at_risk, members] = units_[unit];
  // The other unit of the group need not search for the fastest scheme again.
  if (!outcome.scheme.empty())
    for (const std::size_t i : plan_.candidates.groups[group].members) plan_.candidates.all[i].scheme = outcome.scheme;
  for (std::size_t place = 0; place < members.size(); ++place) {
    if (outcome.runs[place].verdict == Verdict::beaten) continue;
    PlannedRun& run = plan_.runs[members[place]];
    run = outcome.runs[place];
    if (run.invalid && invalid_.empty()) invalid_ = run.reason;
    if (run.verdict == Verdict::impossible) continue;
    ++plan_.simulated;
    judge(request_, run);
    if (run.verdict == Verdict::meets) take_in(members[place]);
  }
}

/// Lets candidate `i`, which meets the goals, beat others. It joins the front, unless another one beats it, and those
/// that it beats leave.
void Search::take_in(std::size_t i) {
  const double objective = plan::objective_of(request_, plan_.runs[i]);
  least_ = std::min(least_.value_or(objective), objective);
  if (plan_.runs[i].risk_is_known())
    least_of_known_risk_ = std::min(least_of_known_risk_.value_or(objective), objective);
  const auto beats = [&](std::size_t a, std::size_t b) {
    return plan_.runs[a].time_s.median <= plan_.runs[b].time_s.median &&
           plan_.runs[a].usd_at_worst <= plan_.runs[b].usd_at_worst;
  };
  if (std::any_of(front_.begin(), front_.end(), [&](std::size_t other) { return beats(other, i); })) return;
  std::erase_if(front_, [&](std::size_t other) { return beats(i, other); });
  front_.push_back(i);
}

Plan Search::plan() {
  // If no candidate has a valid scenario, the request is wrong.
  if (plan_.simulated == 0 && !invalid_.empty() && !options_.at_most) throw ConfigError(invalid_);
  choose_answer(request_, plan_);
  return std::move(plan_);
}

}  // namespace ganymede::plan
