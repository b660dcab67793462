#include "plan/answer.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "common/statistics.hpp"

namespace ganymede::plan {
namespace {

constexpr double kMoreMoney = 1.05;
constexpr double kLessTime = 0.9;
constexpr double kMoreSure = 0.01;

std::size_t knee_of(const Plan& plan) {
  std::vector<std::pair<double, double>> front;
  for (const std::size_t i : plan.pareto) front.emplace_back(plan.runs[i].time_s.median, plan.runs[i].usd_at_worst);
  return plan.pareto[ganymede::knee_of(front)];
}

}  // namespace

int per_mille(double probability) {
  return static_cast<int>(probability > 0.99 ? 1000 : std::lround(1000 * probability));
}

std::tuple<double, double, double, double, std::size_t> time_and_cost(const Plan& plan, std::size_t i) {
  const PlannedRun& run = plan.runs[i];
  return {run.time_s.median, run.usd_at_worst, run.usd.median, run.usd.low, i};
}

Cards cards_of(const Plan& plan) {
  Cards cards;
  if (plan.pareto.empty()) return cards;
  cards.cheapest = plan.pareto.back();
  cards.balanced = knee_of(plan);
  const auto rank = [&](std::size_t i) {
    const PlannedRun& run = plan.runs[i];
    return std::tuple(-per_mille(run.probability), !run.risk_is_known(), run.usd.high, i);
  };
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    if (plan.runs[i].verdict == Verdict::meets && (!cards.safest || rank(i) < rank(*cards.safest))) cards.safest = i;
  return cards;
}

std::vector<std::size_t> more_money_of(const Plan& plan) {
  if (!plan.best) return {};
  const PlannedRun& best = plan.runs[*plan.best];
  std::optional<std::size_t> fastest, surest;
  const auto time = [&](std::size_t i) { return time_and_cost(plan, i); };
  const auto doubt = [&](std::size_t i) { return std::tuple(-per_mille(plan.runs[i].probability), time(i)); };
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PlannedRun& run = plan.runs[i];
    if (run.verdict != Verdict::meets || run.usd_at_worst > kMoreMoney * best.usd_at_worst ||
        run.usd.median > kMoreMoney * best.usd.median)
      continue;
    if (run.time_s.median <= kLessTime * best.time_s.median && (!fastest || time(i) < time(*fastest))) fastest = i;
    if (run.probability >= best.probability + kMoreSure && (!surest || doubt(i) < doubt(*surest))) surest = i;
  }
  std::vector<std::size_t> out;
  if (fastest) out.push_back(*fastest);
  if (surest && surest != fastest) out.push_back(*surest);
  return out;
}

}  // namespace ganymede::plan
