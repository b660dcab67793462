#include "plan/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/answer.hpp"

namespace ganymede::plan {
namespace {

constexpr std::size_t kNearMissesMax = 5;

/// How far a run is from the goals: 1.2 means 20 % too slow or too expensive.
double excess_of(const Request& request, double time_s, double usd) {
  double largest = 0;
  if (request.deadline) largest = std::max(largest, time_s / request.deadline->si);
  if (request.budget) largest = std::max(largest, usd / usd_of(*request.budget));
  return largest;
}

void choose_near_misses(const Request& request, Plan& plan) {
  // How far each candidate that misses is from the goals, its cost and its index.
  std::vector<std::tuple<double, double, std::size_t>> misses;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PlannedRun& run = plan.runs[i];
    const Bounds& bounds = plan.candidates.all[i].bounds;
    if (run.verdict == Verdict::misses)
      misses.emplace_back(request.sure ? excess_of(request, run.time_s.high, run.usd.high)
                                       : excess_of(request, run.time_s.median, run.usd.median),
                          run.usd.median, i);
    if (run.verdict == Verdict::too_slow || run.verdict == Verdict::too_dear)
      misses.emplace_back(std::max(1.0, excess_of(request, std::max(bounds.time_s, run.at_least.time_s), bounds.usd)),
                          bounds.usd, i);
    if (run.verdict == Verdict::too_rare)
      misses.emplace_back(request.certainty / std::max(run.probability, 1e-6), bounds.usd, i);
  }
  std::sort(misses.begin(), misses.end());
  // Each set of nodes is listed once: the same nodes with five checkpoint intervals are one near miss.
  std::vector<std::tuple<std::size_t, const platforms::Instance*, int, platforms::Market>> seen;
  for (const auto& [excess, usd, i] : misses) {
    const PlanCandidate& candidate = plan.candidates.all[i];
    const std::tuple place(candidate.catalog, candidate.instance, candidate.nodes, candidate.market);
    if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
    seen.push_back(place);
    plan.near_misses.push_back(i);
    if (plan.near_misses.size() == kNearMissesMax) break;
  }
}

}  // namespace

bool is_better(const Request& request, const Plan& plan, std::size_t a, const std::optional<std::size_t>& b) {
  const auto rank = [&](std::size_t i) {
    return std::tuple_cat(std::tuple(objective_of(request, plan.runs[i])), time_and_cost(plan, i));
  };
  return !b || rank(a) < rank(*b);
}

std::string describe_miss(const Request& request, const PlannedRun& run) {
  std::string why;
  const double time_s = request.sure ? run.time_s.high : run.time_s.median;
  const double usd = request.sure ? run.usd.high : run.usd.median;
  const char* up_to = request.sure ? " up to" : "";
  if (request.deadline && time_s > request.deadline->si)
    why = fmt::format("takes{} {} (deadline {})", up_to, to_string(Seconds{time_s}), to_string(*request.deadline));
  if (request.budget && usd > usd_of(*request.budget))
    why += fmt::format("{}costs{} {:.2f} USD (budget {})", why.empty() ? "" : " and ", up_to, usd,
                       to_string(*request.budget));
  if (!why.empty()) return why;
  const bool has_goals = request.deadline || request.budget || request.quality;
  // Rounded down, so that 89.9 % is not called the 90 % that were asked for.
  return fmt::format("{} in {:.0f} %, asked are {:g} %", has_goals ? "goals met" : "finishes",
                     std::floor(100 * std::min(run.probability, request.sure ? run.met_share : 1)),
                     100 * request.certainty);
}

void judge(const Request& request, PlannedRun& run) {
  const bool meets =
      run.probability >= request.certainty - 1e-9 && (!request.sure || run.met_share >= request.certainty - 1e-12);
  run.verdict = meets ? Verdict::meets : Verdict::misses;
  if (!meets) run.reason = describe_miss(request, run);
}

void choose_answer(const Request& request, Plan& plan) {
  std::vector<std::size_t> meeting;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    if (plan.runs[i].verdict == Verdict::meets && std::isfinite(objective_of(request, plan.runs[i])))
      meeting.push_back(i);
  for (const std::size_t i : meeting) {
    if (is_better(request, plan, i, plan.best)) plan.best = i;
    if (plan.runs[i].risk_is_known() && is_better(request, plan, i, plan.best_of_known_risk))
      plan.best_of_known_risk = i;
  }
  std::sort(meeting.begin(), meeting.end(),
            [&](std::size_t a, std::size_t b) { return time_and_cost(plan, a) < time_and_cost(plan, b); });
  double cheapest = -1;
  for (const std::size_t i : meeting) {
    if (cheapest >= 0 && plan.runs[i].usd_at_worst >= cheapest) continue;
    cheapest = plan.runs[i].usd_at_worst;
    plan.pareto.push_back(i);
  }
  plan.cards = cards_of(plan);
  plan.more_money = more_money_of(plan);
  choose_near_misses(request, plan);
}

}  // namespace ganymede::plan
