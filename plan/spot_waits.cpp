#include "plan/spot_waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/statistics.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/bounds.hpp"
#include "plan/choice.hpp"
#include "sim/run/capacity.hpp"

namespace ganymede::plan {
namespace {

/// Waits are looked for until so many times the deadline or the time of training.
constexpr double kLooksFor = 4;

/// The pool whose nodes come and go with the capacity of its zone; null if there is none, or several.
const sim::ScenarioPool* limited_pool(const sim::Scenario& scenario) {
  const sim::ScenarioPool* limited = nullptr;
  for (const sim::ScenarioPool& pool : scenario.pools)
    if (sim::is_modelled(pool.spot) || pool.capacity) {
      if (limited != nullptr) return nullptr;
      limited = &pool;
    }
  return limited;
}

double median_of(const std::vector<Bounds>& runs, double Bounds::*which) {
  std::vector<double> values;
  for (const Bounds& run : runs) values.push_back(run.*which);
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

SpotWait wait_for_spot(const sim::Scenario& scenario, const sim::ScenarioPool& pool, double start_s, double training_s,
                       double limit_s) {
  sim::Capacity capacity(scenario, pool);
  const double wanted = pool.pool.nodes;
  capacity.raise_demand(pool.pool.nodes);
  SpotWait wait;
  double trained_s = 0, all_since_s = 0, held = 0;
  for (sim::Nanoseconds now = 0; now != sim::kNever;) {
    const double now_s = sim::to_seconds(now).si;
    const double before = held;
    held = std::min(std::floor(capacity.at(now)), wanted);
    if (before < wanted && held == wanted) all_since_s = now_s;
    if (before == wanted && held < wanted) trained_s += std::max(0.0, now_s - all_since_s - start_s);
    wait.interrupted += std::max(0.0, before - held);
    const sim::Nanoseconds next = capacity.next_after(now);
    const double next_s = next == sim::kNever ? limit_s : std::min(limit_s, sim::to_seconds(next).si);
    wait.end_s = held == wanted ? std::min(next_s, all_since_s + start_s + training_s - trained_s) : next_s;
    wait.node_s += held * std::max(0.0, wait.end_s - now_s);
    wait.ends = wait.end_s < next_s;
    if (wait.ends || next_s >= limit_s) break;
    now = next;
  }
  return wait;
}

Bounds WaitingRuns::medians() const {
  const std::vector<Bounds>& runs = ending.empty() ? endless : ending;
  return {median_of(runs, &Bounds::time_s), median_of(runs, &Bounds::usd), median_of(runs, &Bounds::usd_at_worst)};
}

// A run beyond the deadline misses it with a probability of a half at least, as its stated errors stretch and shorten
// it alike. One beyond the budget costs less with at most three quarters, because its price may be lower too.
std::optional<PlannedRun> WaitingRuns::ruled_out(const Request& request) const {
  constexpr double kNearly = 1e-3;
  double chance = 0;
  for (const std::vector<Bounds>* some : {&ending, &endless})
    for (const Bounds& run : *some)
      chance += request.deadline && run.time_s > request.deadline->si ? 0.5
                : request.budget && run.usd > usd_of(*request.budget) ? 0.75
                                                                      : 1;
  const auto runs = static_cast<double>(ending.size() + endless.size());
  if (runs - chance <= runs * (1 - request.certainty) + kNearly) return {};
  const Bounds least = medians();
  const bool late = request.deadline && least.time_s > request.deadline->si;
  const bool dear = request.budget && least.usd > usd_of(*request.budget);
  PlannedRun out;
  out.verdict = late || !dear ? Verdict::too_slow : Verdict::too_dear;
  out.at_least = {least.time_s, least.usd_at_worst};
  out.reason = "waits for spot nodes: ";
  if (late)
    out.reason +=
        fmt::format("takes at least {} (deadline {})", to_string(Seconds{least.time_s}), to_string(*request.deadline));
  if (dear)
    out.reason += fmt::format("{}costs at least {:.2f} USD (budget {})", late ? " and " : "", least.usd,
                              to_string(*request.budget));
  if (!late && !dear)
    out.reason += fmt::format("goals met in {:.0f} % at most, asked are {:g} %", std::ceil(100 * chance / runs),
                              100 * request.certainty);
  return out;
}

std::optional<WaitingRuns> waiting_runs(const Request& request, const PlanCandidate& candidate, const Bounds& least,
                                        sim::Scenario& scenario, std::span<const std::uint64_t> seeds,
                                        std::span<const std::int64_t> images) {
  const sim::ScenarioPool* pool = limited_pool(scenario);
  if (pool == nullptr || !candidate.policy->policy->never_changes) return {};
  const double start_s = candidate.work.first_start_s;
  const bool granted_at_once = scenario.provisioning.queue.median.si == 0;
  WaitingRuns out;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    Bounds run = images.empty() ? least : bounds_for_images(request, candidate, least, images[i]);
    const double training_s = std::max(0.0, run.time_s - (images.empty() ? candidate.work.start_s : start_s));
    const double limit_s = kLooksFor * std::max(training_s + start_s, request.deadline.value_or(Seconds{0}).si);
    sim::set_seed(scenario, seeds[i]);
    const SpotWait wait = wait_for_spot(scenario, *pool, start_s, training_s, limit_s);
    run.time_s = std::max(run.time_s, wait.end_s);
    if (granted_at_once) add_waits(request, candidate, wait.end_s, wait.node_s, wait.interrupted, run);
    (wait.ends ? out.ending : out.endless).push_back(run);
  }
  return out;
}

bool decided_by_waits(const Request& request, const PlanCandidate& candidate, const Bounds& least, const Front& front,
                      sim::Scenario& scenario, std::span<const std::uint64_t> seeds,
                      std::span<const std::int64_t> images, PlannedRun& out) {
  if (front.exhaustive()) return false;
  const auto waiting = waiting_runs(request, candidate, least, scenario, seeds, images);
  if (!waiting) return false;
  const Bounds medians = waiting->medians();
  if (front.beats(candidate, medians)) {
    out.at_least = {medians.time_s, medians.usd_at_worst};
    return true;
  }
  auto ruled_out = waiting->ruled_out(request);
  if (ruled_out) out = *std::move(ruled_out);
  return ruled_out.has_value();
}

}  // namespace ganymede::plan
