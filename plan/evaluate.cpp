#include "plan/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "common/usd.hpp"
#include "plan/bounds.hpp"
#include "plan/chances.hpp"
#include "plan/choice.hpp"
#include "plan/spot_waits.hpp"
#include "sim/run/simulate.hpp"
#include "sim/steps/worker_layout.hpp"

namespace ganymede::plan {
namespace {

/// Runs of each seed of a candidate whose goal is an FID: each stands for an equal share of what is known of the
/// images. An odd number, as is that of the seeds then, so that more than half of the runs train for as many images as
/// the median or more, as bounds take it.
constexpr int kRunsOfASeed = 5;

/// Factor on step times that were sampled on one market and bound a run on two markets. The steps of both are sampled
/// separately, each to a relative half-width of 0.5 % at 95 %; the factor allows for four half-widths.
constexpr double kOtherSample = 0.98;

/// Runs after which a candidate is left out if all of them are beaten. At least ten of its twenty or more runs are at
/// or below their median: that the first five are all among the others has a probability of at most 1.6 % (of 20 runs,
/// 15504 sets of five, 252 of them) to 3.1 % (of many). Of fewer than ten runs, all are simulated.
constexpr int kRunsToBeat = 5;

/// A run's bill in dollars: at the stated prices, and with each doubtful price at its lowest and at its highest value.
struct RunCost {
  double usd = 0, low = 0, high = 0;
};

RunCost cost_of(const Request& request, const sim::Scenario& scenario, const sim::Result& run) {
  RunCost cost;
  cost.usd = cost.low = cost.high = usd_of(run.bill.total());
  for (const sim::PoolUse& use : run.pools)
    for (const sim::ScenarioPool& pool : scenario.pools) {
      if (pool.name != use.pool) continue;
      const platforms::PriceDoubt doubt = platforms::price_doubt(pool.instance(), pool.price, request.price_age);
      cost.low -= usd_of(use.usd) * (1 - doubt.low);
      cost.high += usd_of(use.usd) * (doubt.high - 1);
    }
  return cost;
}

/// One quantity of the runs that finish, with the ends of its intervals.
struct SeedValues {
  std::vector<double> values, lows, highs;
  void add(double value, double low, double high) {
    values.push_back(value);
    lows.push_back(low);
    highs.push_back(high);
  }
  PlanMeasure measure() const {
    const SeedQuantiles spread = seed_quantiles(values, lows, highs);
    return {spread.median, spread.low, spread.high};
  }
};

/// The part of a run's cost that does not grow with the time that it trains. GPUs of an instance that are not used are
/// idle for as long.
double fixed_usd_of(const sim::Result& run) {
  double usd = usd_of(run.bill.total());
  for (const GpuUse use : {GpuUse::compute, GpuUse::exposed_communication, GpuUse::straggler, GpuUse::input_stall,
                           GpuUse::lost, GpuUse::idle})
    usd -= usd_of(run.cost_by_use.by_gpu_use.at(static_cast<std::size_t>(use)));
  return usd;
}

/// A run with its errors, for the probability that it keeps the goals. What is stated about a step stretches the time
/// of training alone: hosts boot, and evaluations and checkpoints pause, for as long as they did.
RunChances chances_of(const sim::Result& run, const RunCost& cost) {
  const double deviations = run.inputs == "measured" ? kOf95 : kOf90;
  RunChances chances;
  chances.time_s = {run.total.si, run.interval_s.low, run.interval_s.high, deviations};
  chances.usd = {cost.usd, run.cost_usd.low, run.cost_usd.high, deviations};
  const double training_s = run.step_mean.si * static_cast<double>(run.steps) + run.lost_training.si;
  chances.time_s.least = std::clamp(run.total.si - training_s, 0.0, run.interval_s.low);
  chances.usd.least = std::clamp(fixed_usd_of(run), 0.0, run.cost_usd.low);
  if (cost.usd > 0) chances.price = {1, cost.low / cost.usd, cost.high / cost.usd, kOf95};
  return chances;
}

/// Sums over the runs of a candidate.
struct RunSums {
  SeedValues time, usd, usd_at_worst, kg;
  std::vector<Uncertain> costs;  ///< with doubtful prices at their highest values
  // Only if an FID is the goal, because the runs then differ in their images, and outcomes of all runs are one spread:
  std::vector<Uncertain> times_s, all_usd;  ///< the second with what doubtful prices may be
  std::vector<double> images;
  double busy = 0, losses = 0, lost_s = 0, trained_s = 0, checkpoints = 0, images_per_s = 0;
  double met = 0, chance = 0;  ///< sums of what each run has of meeting the goals, from 0 to 1
  int runs = 0, finished = 0;
  bool carbon = true;
  std::string risk;
  std::string inputs;                 ///< of the first run that finishes
  std::vector<std::string> warnings;  ///< of the same

  void add(const Request& request, const sim::Scenario& scenario, const sim::Result& run);
  PlannedRun planned() const;
};

void RunSums::add(const Request& request, const sim::Scenario& scenario, const sim::Result& run) {
  if (++finished == 1) {
    inputs = run.inputs;
    warnings = run.warnings;
  }
  risk = sim::less_sure(risk, run.risk);
  const RunCost cost = cost_of(request, scenario, run);
  const RunChances chances = chances_of(run, cost);
  const double low = chances.usd.low, high = chances.usd.high * chances.price.high;
  time.add(run.total.si, chances.time_s.low, chances.time_s.high);
  usd.add(cost.usd, low * chances.price.low, high);
  usd_at_worst.add(cost.high, cost.high, cost.high);
  const double deviations = chances.usd.deviations, least = chances.usd.least;
  costs.push_back({cost.high, low * chances.price.high, high, deviations, least * chances.price.high});
  if (scenario.quality) {
    times_s.push_back(chances.time_s);
    all_usd.push_back({cost.usd, low * chances.price.low, high, deviations, least * chances.price.low});
    images.push_back(static_cast<double>(scenario.images));
  }
  const auto energy = run.energy.value_or(documents::EnergyUse());
  kg.add(energy.kg_co2e, energy.kg_co2e_interval.low, energy.kg_co2e_interval.high);
  busy += run.gpu_busy;
  images_per_s += static_cast<double>(run.images) / (run.step_mean.si * static_cast<double>(run.steps));
  losses += static_cast<double>(run.losses);
  lost_s += run.lost_training.si;
  trained_s += run.step_mean.si * static_cast<double>(run.steps) + run.lost_training.si;
  checkpoints += static_cast<double>(run.checkpoints);
  carbon = carbon && run.energy.has_value();
  const std::optional<double> deadline_s = request.deadline ? std::optional(request.deadline->si) : std::nullopt;
  const std::optional<double> budget_usd = request.budget ? std::optional(usd_of(*request.budget)) : std::nullopt;
  const bool in_time = !deadline_s || (request.sure ? chances.time_s.high : run.total.si) <= *deadline_s;
  const bool in_budget = !budget_usd || (request.sure ? high : cost.usd) <= *budget_usd;
  met += in_time && in_budget ? 1 : 0;
  const double gets_there = scenario.quality ? scenario.quality->probability : 1;
  chance += gets_there * chance_of(chances, deadline_s, budget_usd);
}

PlannedRun RunSums::planned() const {
  PlannedRun out;
  out.verdict = Verdict::misses;
  out.time_s = time.measure();
  out.usd = usd.measure();
  if (!images.empty()) {
    constexpr double kBelow = 0.05;  // at each end, as for images
    out.time_s = {out.time_s.median, quantile_of(times_s, kBelow), quantile_of(times_s, 1 - kBelow)};
    out.usd = {out.usd.median, quantile_of(all_usd, kBelow), quantile_of(all_usd, 1 - kBelow)};
    out.usd_per_image = std::max(0.0, slope_of(images, usd.values));
  }
  out.usd_at_worst = usd_at_worst.measure().median;
  if (finished == runs) {  // a run that never finishes has no cost, and then there is no mean
    out.usd_expected = expected(costs);
    out.usd_worst_tenth = tail_mean(costs);
  }
  out.kg_co2e = kg.measure();
  out.carbon_known = carbon;
  out.gpu_busy = busy / finished;
  out.images_per_s = images_per_s / finished;
  out.losses = losses / finished;
  out.lost_s = lost_s / finished;
  out.saved_every_s = checkpoints > 0 ? trained_s / checkpoints : 0;
  out.met_share = met / runs;
  out.probability = std::round(chance / runs * 1e6) / 1e6;
  out.seeds = runs;
  out.never_finish = runs - finished;
  out.risk = risk;
  out.inputs = inputs;
  out.warnings = warnings;
  return out;
}

bool beats(const Front& front, const PlanCandidate& candidate, const RunsAtLeast& runs) {
  return front.beats(candidate, {runs.time_s, 0, runs.usd_at_worst});
}

/// How many runs the candidate gets.
int seeds_needed(const Request& request, const sim::Scenario& scenario) {
  const bool recorded = std::any_of(scenario.pools.begin(), scenario.pools.end(),
                                    [](const sim::ScenarioPool& pool) { return pool.capacity.has_value(); });
  return runs_for(request, sim::has_chances(scenario) || recorded ? request.seeds_at_risk : request.seeds);
}

/// A lower bound of the median of so many values, of which all but the `known` are at least `least`.
double least_median(std::vector<double> known, int count, double least) {
  known.resize(static_cast<std::size_t>(count), least);
  std::sort(known.begin(), known.end());
  return quantile(known, 0.5);
}

/// Simulates the candidate with all its seeds. Runs that never finish miss the goals; all other figures are of the runs
/// that finish. Throws Infeasible if fewer than half of the runs finish. Leaves `out` as it is, but for
/// PlannedRun::at_least, once `front` beats the candidate. `least` are bounds of its runs, but with an FID as the goal
/// only of the median one.
void evaluate_seeds(const Request& request, const PlanCandidate& candidate, const Bounds& least, const Front& front,
                    CandidateScenarios& scenarios, PlannedRun& out) {
  sim::Scenario scenario = scenarios.scenario(candidate);
  const int seeds = seeds_needed(request, scenario);
  std::vector<std::uint64_t> each;
  for (int i = 0; i < seeds; ++i)
    each.push_back(request.seed + static_cast<std::uint64_t>(scenario.quality ? i % (seeds / kRunsOfASeed) : i));
  if (decided_by_waits(request, candidate, least, front, scenario, each, out)) return;
  const std::optional<calibration::TargetOutlook> quality = scenario.quality;
  // With more misses than this the candidate cannot meet the goals. To tell how far it misses them, the seeds of a
  // candidate without risk are enough.
  const double misses_max = seeds * (1 - request.certainty) + 1e-5;
  RunSums sums;
  std::string why_never;
  const auto misses = [&] { return sums.runs - (request.sure ? std::min(sums.met, sums.chance) : sums.chance); };
  const auto beaten = [&](double time_s, double usd_at_worst) {
    const RunsAtLeast now{std::max(time_s, least.time_s), std::max(usd_at_worst, least.usd_at_worst)};
    const bool beaten_now = beats(front, candidate, now);
    if (beaten_now || sums.runs == kRunsToBeat) out.at_least = now;
    return beaten_now;
  };
  for (int i = 0; i < seeds && (misses() <= misses_max || i < request.seeds); ++i) {
    ++sums.runs;
    sim::set_seed(scenario, each[static_cast<std::size_t>(i)]);
    if (quality)
      sim::train_to_fid(
          scenario, drawn_images({quality->images.median, quality->images.low, quality->images.high, kOf90}, i, seeds));
    try {
      sums.add(request, scenario, sim::simulate(scenario, request.caches->steps));
    } catch (const Infeasible& error) {
      why_never = error.what();
    }
    const std::vector<double>&times = sums.time.values, &costs = sums.usd_at_worst.values;
    if (2 * sums.runs >= seeds) {
      if (beaten(least_median(times, seeds, quality ? 0 : least.time_s),
                 least_median(costs, seeds, quality ? 0 : least.usd_at_worst)))
        return;
    } else if (sums.runs == kRunsToBeat && sums.finished > 0 &&
               beaten(std::ranges::min(times), std::ranges::min(costs))) {
      return;
    }
  }
  if (2 * sums.finished < sums.runs) throw Infeasible(why_never);
  const RunsAtLeast first = out.at_least;
  out = sums.planned();
  out.at_least = first;
}

/// The same, or why the candidate cannot run.
PlannedRun simulate_candidate(const Request& request, const PlanCandidate& candidate, const Bounds& least,
                              const Front& front, CandidateScenarios& scenarios) {
  PlannedRun out;
  try {
    evaluate_seeds(request, candidate, least, front, scenarios, out);
    return out;
  } catch (const ConfigError& error) {  // for example a storage class that this catalog does not have
    out.invalid = true;
    out.reason = error.what();
  } catch (const Infeasible& error) {
    out.reason = error.what();
  } catch (const Failure& error) {
    out.reason = error.what();
  }
  out.verdict = Verdict::impossible;
  return out;
}

/// Enters the mean steps of a candidate's whole allocation, the same that its runs take, and returns the seconds for
/// one image, as a mean over the stages.
double add_mean_steps(const Request& request, PlanCandidate candidate, CandidateScenarios& scenarios,
                      UnitOutcome& out) {
  static const RequestPolicy kFixed{{{"name", policies::default_policy().name}}, &policies::default_policy()};
  candidate.policy = &kFixed;
  candidate.on_demand_nodes = 0;
  const sim::Scenario scenario = scenarios.scenario(candidate);
  sim::ScenarioSteps times(scenario, request.caches->steps);
  double per_image_s = 0;
  for (std::size_t stage = 0; stage < scenario.stages.size(); ++stage) {
    sim::Configuration whole;
    whole.nodes = {candidate.nodes};
    whole.stage = stage;
    whole.nic_burst = sim::nics_burst(scenario, whole.nodes);  // no later step is shorter
    const sim::StepDistribution& known = times.distribution(whole);
    out.mean_s.push_back(known.mean.si);
    out.images = known.images;
    per_image_s += scenario.stage_shares[stage] * known.mean.si / known.images;
  }
  return per_image_s;
}

/// The fastest all-reduce scheme that the candidates of a group can use, with its steps, which are those of each. If no
/// scheme works, it is the first one: each candidate is still simulated, and its run says why it cannot run.
UnitOutcome with_fastest_scheme(const Request& request, PlanCandidate candidate, CandidateScenarios& scenarios) {
  const std::vector<std::string> schemes = candidate.scheme == "any" ? request.schemes : std::vector{candidate.scheme};
  UnitOutcome fastest;
  fastest.scheme = schemes.front();
  double least_s = std::numeric_limits<double>::infinity();
  for (const std::string& scheme : schemes) {
    candidate.scheme = scheme;
    try {
      UnitOutcome steps;
      steps.scheme = scheme;
      const double per_image_s = add_mean_steps(request, candidate, scenarios, steps);
      if (per_image_s >= least_s) continue;
      least_s = per_image_s;
      fastest = std::move(steps);
    } catch (const ConfigError&) {  // this scheme cannot serve the candidate
    } catch (const Infeasible&) {
    }
  }
  return fastest;
}

/// Adds a run for each member, the cheapest by their bounds first: run(member's index, candidate, bounds of its runs,
/// what beats it) unless its bounds are beaten.
void add_runs(const Request& request, const std::vector<PlanCandidate>& members, Front front, UnitOutcome& out,
              const std::function<PlannedRun(std::size_t, const PlanCandidate&, const Bounds&, const Front&)>& run) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return members[a].bounds.usd_at_worst < members[b].bounds.usd_at_worst;
  });
  out.runs.resize(members.size());
  for (const std::size_t i : order) {
    PlanCandidate candidate = members[i];
    candidate.scheme = out.scheme;
    std::vector<double> least_s = out.mean_s;
    if (candidate.on_demand_nodes > 0)
      for (double& step : least_s) step *= kOtherSample;
    const auto by_steps = least_s.empty() ? std::nullopt : bounds_by_steps(request, candidate, least_s, out.images);
    const Bounds& all = candidate.bounds;
    const Bounds least = by_steps ? Bounds{std::max(all.time_s, by_steps->time_s), std::max(all.usd, by_steps->usd),
                                           std::max(all.usd_at_worst, by_steps->usd_at_worst)}
                                  : all;
    if (front.beats(candidate, least)) continue;
    PlannedRun judged = run(i, candidate, least, front);
    // What evaluate_seeds() leaves out is left out here too if `run` knows it from where less was beaten.
    const RunsAtLeast medians{judged.time_s.median, judged.usd_at_worst};
    for (const RunsAtLeast& least_runs : {judged.at_least, medians})
      if (beats(front, candidate, least_runs)) {
        judged = {};
        judged.at_least = least_runs;
      }
    out.runs[i] = judged;
    if (!judged.simulated()) continue;
    judge(request, judged);
    if (judged.verdict == Verdict::meets) front.take_in(candidate, judged);
  }
}

}  // namespace

int runs_for(const Request& request, int seeds) { return request.quality ? kRunsOfASeed * (seeds | 1) : seeds; }

void add_runs_for_chance(const Request& request, const PlanCandidate& candidate, PlannedRun& run) {
  CandidateScenarios scenarios(request);
  sim::Scenario scenario = scenarios.scenario(candidate);
  const double misses_max = kRunsForChance * (1 - request.certainty) + 1e-5;
  RunSums sums;
  while (sums.runs < kRunsForChance && sums.runs - sums.chance <= misses_max) {
    sim::set_seed(scenario, request.seed + static_cast<std::uint64_t>(sums.runs++));
    try {
      sums.add(request, scenario, sim::simulate(scenario, request.caches->steps));
    } catch (const Infeasible&) {  // a run that never finishes misses
    }
  }
  run.probability = std::round(sums.chance / sums.runs * 1e6) / 1e6;
  run.probability_runs = sums.runs;
}

UnitOutcome evaluate_group(const Request& request, const std::vector<PlanCandidate>& members, Front front,
                           CandidateScenarios& scenarios) {
  UnitOutcome out = with_fastest_scheme(request, members.front(), scenarios);
  add_runs(request, members, std::move(front), out,
           [&](std::size_t /*member*/, const PlanCandidate& candidate, const Bounds& least, const Front& all) {
             return simulate_candidate(request, candidate, least, all, scenarios);
           });
  return out;
}

std::optional<UnitOutcome> repeat_group(const Request& request, const std::vector<PlanCandidate>& members, Front front,
                                        const UnitOutcome& known) {
  if (members.front().scheme != "any" && members.front().scheme != known.scheme) return {};
  UnitOutcome out{known.scheme, known.mean_s, known.images, {}};
  bool lacks = false;
  add_runs(request, members, std::move(front), out,
           [&](std::size_t member, const PlanCandidate& candidate, const Bounds& /*least*/, const Front& all) {
             const PlannedRun& run = known.runs[member];
             lacks = lacks || (run.verdict == Verdict::beaten && !beats(all, candidate, run.at_least));
             return run;
           });
  return lacks ? std::nullopt : std::optional(std::move(out));
}

}  // namespace ganymede::plan
