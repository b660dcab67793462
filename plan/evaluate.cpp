#include "plan/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/usd.hpp"
#include "plan/bounds.hpp"
#include "plan/chances.hpp"
#include "plan/what_if.hpp"
#include "sim/run/seeds.hpp"
#include "sim/run/simulate.hpp"
#include "sim/scenario/images_to_fid.hpp"

namespace ganymede::plan {
namespace {

using EvaluationJson = Json;

/// Runs of each seed of a candidate whose goal is an FID: each stands for an equal share of what is known of the
/// images. An odd number, as is that of the seeds then, so that more than half of the runs train for as many images as
/// the median or more, as bounds take it.
constexpr int kRunsOfASeed = 5;

/// Factor on step times that were sampled on one market and bound a run on two markets. The steps of both are sampled
/// separately, each to a relative half-width of 0.5 % at 95 %; the factor allows for four half-widths.
constexpr double kOtherSample = 0.98;

sim::Scenario scenario_as_asked(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches) {
  sim::Scenario scenario =
      sim::read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""), caches.inputs);
  apply_what_if(request, scenario);
  return scenario;
}

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
  EvaluationJson json() const {
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

/// The images of a training that gets to the FID: those of run `i` of `runs`, which are equal shares of what is known
/// of them. The first run's are the median's. The others follow at a distance that has no common divisor with the
/// number of runs, so that the first few runs already spread over all; and those of one seed, a fifth of the runs
/// apart, too, so that luck with nodes does not go with images.
std::int64_t drawn_images(const calibration::QualityInterval& images, int i, int runs) {
  int stride = std::max(1, static_cast<int>(std::lround(0.618 * runs)));
  while (std::gcd(stride, runs) != 1) ++stride;
  const auto place = (runs / 2 + static_cast<std::int64_t>(i) * stride) % runs;
  const Uncertain drawn{images.median, images.low, images.high, kOf90};
  const double z = normal_quantile((static_cast<double>(place) + 0.5) / runs);
  return std::max<std::int64_t>(1, std::llround(std::ceil(drawn.at(z))));
}

/// The slope of the straight line through the points (x, y) with the least squares; 0 if all x are equal.
double slope_of(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return xx > 0 ? xy / xx : 0;
}

/// Sums over the runs of a candidate.
struct RunSums {
  SeedValues time, usd, usd_at_worst, kg;
  std::vector<Uncertain> costs;  ///< with doubtful prices at their highest values
  // Only if an FID is the goal, because the runs then differ in their images, and outcomes of all runs are one spread:
  std::vector<Uncertain> times_s, all_usd;  ///< the second with what doubtful prices may be
  std::vector<double> images;
  double busy = 0, losses = 0, images_per_s = 0;
  double met = 0, chance = 0;  ///< sums of what each run has of meeting the goals, from 0 to 1
  int runs = 0, finished = 0;
  bool carbon = true;
  std::string risk;

  void add(const Request& request, const sim::Scenario& scenario, const sim::Result& run);
  EvaluationJson json() const;
};

void RunSums::add(const Request& request, const sim::Scenario& scenario, const sim::Result& run) {
  ++finished;
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
  carbon = carbon && run.energy.has_value();
  const std::optional<double> deadline_s = request.deadline ? std::optional(request.deadline->si) : std::nullopt;
  const std::optional<double> budget_usd = request.budget ? std::optional(usd_of(*request.budget)) : std::nullopt;
  const bool in_time = !deadline_s || (request.sure ? chances.time_s.high : run.total.si) <= *deadline_s;
  const bool in_budget = !budget_usd || (request.sure ? high : cost.usd) <= *budget_usd;
  met += in_time && in_budget ? 1 : 0;
  const double gets_there = scenario.quality ? scenario.quality->probability : 1;
  chance += gets_there * chance_of(chances, deadline_s, budget_usd);
}

EvaluationJson RunSums::json() const {
  EvaluationJson out;
  out["time"] = time.json();
  out["usd"] = usd.json();
  if (!images.empty()) {
    constexpr double kBelow = 0.05;  // at each end, as for images
    out["time"] = {out["time"][0], quantile_of(times_s, kBelow), quantile_of(times_s, 1 - kBelow)};
    out["usd"] = {out["usd"][0], quantile_of(all_usd, kBelow), quantile_of(all_usd, 1 - kBelow)};
    out["usd_per_image"] = std::max(0.0, slope_of(images, usd.values));
  }
  out["usd_at_worst"] = usd_at_worst.json()[0];
  // A run that never finishes has no cost, and then there is no mean.
  const bool all = finished == runs;
  out["usd_expected"] = all ? EvaluationJson(expected(costs)) : EvaluationJson(nullptr);
  out["usd_worst_tenth"] = all ? EvaluationJson(tail_mean(costs)) : EvaluationJson(nullptr);
  out["kg"] = kg.json();
  out["carbon_known"] = carbon;
  out["busy"] = busy / finished;
  out["images_per_s"] = images_per_s / finished;
  out["losses"] = losses / finished;
  out["met"] = met / runs;
  out["probability"] = std::round(chance / runs * 1e6) / 1e6;
  out["seeds"] = runs;
  out["never_finish"] = runs - finished;
  out["risk"] = risk;
  return out;
}

/// Simulates the candidate with all its seeds. Runs that never finish miss the goals; all other figures are of the runs
/// that finish. Throws Infeasible if fewer than half of the runs finish.
EvaluationJson evaluate_seeds(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches) {
  sim::Scenario scenario = scenario_as_asked(request, candidate, caches);
  const int seeds = seeds_needed(request, scenario);
  const std::optional<calibration::TargetOutlook> quality = scenario.quality;
  // With more misses than this the candidate cannot meet the goals. To tell how far it misses them, the seeds of a
  // candidate without risk are enough.
  const double misses_max = seeds * (1 - request.certainty) + 1e-5;
  RunSums sums;
  std::string why_never;
  EvaluationJson first;
  const auto misses = [&] { return sums.runs - (request.sure ? std::min(sums.met, sums.chance) : sums.chance); };
  for (int i = 0; i < seeds && (misses() <= misses_max || i < request.seeds); ++i) {
    ++sums.runs;
    sim::set_seed(scenario, request.seed + static_cast<std::uint64_t>(quality ? i % (seeds / kRunsOfASeed) : i));
    if (quality) sim::train_to_fid(scenario, drawn_images(quality->images, i, seeds));
    try {
      const sim::Result run = sim::simulate(scenario, caches.steps);
      sums.add(request, scenario, run);
      if (sums.finished == 1) first = {{"inputs", run.inputs}, {"warnings", run.warnings}};
    } catch (const Infeasible& error) {
      why_never = error.what();
    }
  }
  if (2 * sums.finished < sums.runs) throw Infeasible(why_never);
  EvaluationJson out = sums.json();
  out.update(first);
  return out;
}

/// Mean step times of a candidate's whole allocation, the same that its runs take.
struct MeanSteps {
  std::vector<double> mean_s;  ///< one for each stage
  double images = 0;           ///< images that a step trains
  double per_image_s = 0;      ///< seconds for one image, as a mean over the stages
};

MeanSteps mean_steps_of(const Request& request, PlanCandidate candidate, EvaluationCaches& caches) {
  static const RequestPolicy kFixed{{{"name", policies::default_policy().name}}, &policies::default_policy()};
  candidate.policy = &kFixed;
  candidate.on_demand_nodes = 0;
  const sim::Scenario scenario = scenario_as_asked(request, candidate, caches);
  sim::ScenarioSteps times(scenario, caches.steps);
  MeanSteps steps;
  for (std::size_t stage = 0; stage < scenario.stages.size(); ++stage) {
    sim::Configuration whole;
    whole.nodes = {candidate.nodes};
    whole.stage = stage;
    const sim::StepDistribution& known = times.distribution(whole);
    steps.mean_s.push_back(known.mean.si);
    steps.images = known.images;
    steps.per_image_s += scenario.stage_shares[stage] * known.mean.si / known.images;
  }
  return steps;
}

/// The fastest all-reduce scheme that a candidate can use, with its steps; empty if it can use none.
struct FastestScheme {
  std::string scheme;
  MeanSteps steps;
};

FastestScheme fastest_scheme(const Request& request, PlanCandidate candidate, EvaluationCaches& caches) {
  FastestScheme fastest;
  const std::vector<std::string> schemes =
      candidate.scheme == "any" ? request.schemes : std::vector<std::string>{candidate.scheme};
  for (const std::string& scheme : schemes) {
    candidate.scheme = scheme;
    try {
      MeanSteps steps = mean_steps_of(request, candidate, caches);
      if (!fastest.scheme.empty() && steps.per_image_s >= fastest.steps.per_image_s) continue;
      fastest.scheme = scheme;
      fastest.steps = std::move(steps);
    } catch (const ConfigError&) {  // this scheme cannot serve the candidate
    } catch (const Infeasible&) {
    }
  }
  return fastest;
}

/// The JSON of evaluate_group(), with answer(member's index, candidate) for each member that is not beaten.
EvaluationJson answers_of(const Request& request, const EvaluationUnit& unit, const IsBeaten& is_beaten,
                          const FastestScheme& fastest,
                          const std::function<EvaluationJson(std::size_t, const PlanCandidate&)>& answer) {
  EvaluationJson answers = EvaluationJson::array();
  for (std::size_t i = 0; i < unit.members.size(); ++i) {
    PlanCandidate candidate = unit.members[i];
    candidate.scheme = fastest.scheme;
    std::vector<double> least = fastest.steps.mean_s;
    if (candidate.on_demand_nodes > 0)
      for (double& step : least) step *= kOtherSample;
    const auto bounds = least.empty() ? std::nullopt : bounds_by_steps(request, candidate, least, fastest.steps.images);
    const bool beaten = bounds && is_beaten(candidate, *bounds);
    answers.push_back(beaten ? EvaluationJson{{"beaten", true}} : answer(i, candidate));
  }
  return {{"scheme", fastest.scheme},
          {"mean_s", fastest.steps.mean_s},
          {"images", fastest.steps.images},
          {"answers", std::move(answers)}};
}

}  // namespace

int runs_for(const Request& request, int seeds) { return request.quality ? kRunsOfASeed * (seeds | 1) : seeds; }

int seeds_needed(const Request& request, const sim::Scenario& scenario) {
  const bool recorded = std::any_of(scenario.pools.begin(), scenario.pools.end(),
                                    [](const sim::ScenarioPool& pool) { return pool.capacity.has_value(); });
  return runs_for(request, sim::has_chances(scenario) || recorded ? request.seeds_at_risk : request.seeds);
}

Json simulate_candidate(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches) {
  try {
    return evaluate_seeds(request, candidate, caches);
  } catch (const ConfigError& error) {  // for example a storage class that this catalog does not have
    return {{"invalid", error.what()}};
  } catch (const Infeasible& error) {
    return {{"impossible", error.what()}};
  } catch (const Failure& error) {
    return {{"impossible", error.what()}};
  }
}

Json evaluate_group(const Request& request, const EvaluationUnit& unit, const IsBeaten& is_beaten,
                    EvaluationCaches& caches) {
  // If no scheme works, each candidate is still simulated, and its answer says why it cannot run.
  FastestScheme fastest = fastest_scheme(request, unit.first, caches);
  if (fastest.scheme.empty()) fastest.scheme = unit.first.scheme == "any" ? request.schemes.front() : unit.first.scheme;
  return answers_of(request, unit, is_beaten, fastest, [&](std::size_t /*member*/, const PlanCandidate& candidate) {
    return simulate_candidate(request, candidate, caches);
  });
}

Json repeat_group(const Request& request, const EvaluationUnit& unit, const IsBeaten& is_beaten, const Json& known,
                  const std::vector<Json>& answers) {
  const FastestScheme fastest{known["scheme"].get<std::string>(),
                              {known["mean_s"].get<std::vector<double>>(), known["images"].get<double>(), 0}};
  if (unit.first.scheme != "any" && unit.first.scheme != fastest.scheme) return nullptr;
  bool lacks_one = false;
  EvaluationJson out =
      answers_of(request, unit, is_beaten, fastest, [&](std::size_t member, const PlanCandidate& /*candidate*/) {
        lacks_one = lacks_one || answers[member].contains("beaten");
        return answers[member];
      });
  return lacks_one ? EvaluationJson(nullptr) : out;
}

}  // namespace ganymede::plan
