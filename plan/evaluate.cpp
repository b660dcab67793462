#include "plan/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "plan/bounds.hpp"
#include "sim/run/seeds.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede::plan {
namespace {

using EvaluationJson = nlohmann::json;

/// Factor on step times that were sampled on one market and bound a run on two markets. The steps of both are sampled
/// separately, each to a relative half-width of 0.5 % at 95 %; the factor allows for four half-widths.
constexpr double kOtherSample = 0.98;

double usd_of(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

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

/// Simulates the candidate with all its seeds. Runs that never finish miss the goals; all other figures are of the runs
/// that finish. Throws Infeasible if fewer than half of the runs finish.
EvaluationJson evaluate_seeds(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches) {
  sim::Scenario scenario =
      sim::read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""), caches.inputs);
  const int seeds = seeds_needed(request, scenario);
  SeedValues time, usd, usd_at_worst, kg;
  double busy = 0, losses = 0, met = 0;
  // With more misses than this the candidate cannot meet the goals. To tell how far it misses them, the seeds of a
  // candidate without risk are enough.
  const int misses_max = static_cast<int>(std::floor(seeds * (1 - request.certainty) + 1e-9));
  int run_seeds = 0, finished = 0;
  bool carbon = true;
  std::string risk, why_never;
  EvaluationJson out;
  for (int i = 0; i < seeds && (i - met <= misses_max || i < request.seeds); ++i) {
    ++run_seeds;
    sim::set_seed(scenario, request.seed + static_cast<std::uint64_t>(i));
    sim::Result run;
    try {
      run = sim::simulate(scenario, caches.steps);
    } catch (const Infeasible& error) {
      why_never = error.what();
      continue;
    }
    ++finished;
    risk = sim::less_sure(risk, run.risk);
    const RunCost cost = cost_of(request, scenario, run);
    const double scale = cost.usd > 0 ? 1 / cost.usd : 0;
    const double high = run.cost_usd.high * (cost.usd > 0 ? cost.high * scale : 1);
    time.add(run.total.si, run.interval_s.low, run.interval_s.high);
    usd.add(cost.usd, run.cost_usd.low * (cost.usd > 0 ? cost.low * scale : 1), high);
    usd_at_worst.add(cost.high, cost.high, cost.high);
    const double co2e = run.energy ? run.energy->kg_co2e : 0;
    kg.add(co2e, run.kg_co2e.low, run.kg_co2e.high);
    busy += run.gpu_busy;
    losses += static_cast<double>(run.losses);
    const bool in_time =
        !request.deadline || (request.sure ? run.interval_s.high : run.total.si) <= request.deadline->si;
    const bool in_budget = !request.budget || (request.sure ? high : cost.usd) <= usd_of(*request.budget);
    met += in_time && in_budget ? 1 : 0;
    carbon = carbon && run.energy.has_value();
    if (finished == 1) out = {{"inputs", run.inputs}, {"warnings", run.warnings}};
  }
  if (2 * finished < run_seeds) throw Infeasible(why_never);
  out["time"] = time.json();
  out["usd"] = usd.json();
  out["usd_at_worst"] = usd_at_worst.json()[0];
  out["kg"] = kg.json();
  out["carbon_known"] = carbon;
  out["busy"] = busy / finished;
  out["losses"] = losses / finished;
  out["met"] = met / run_seeds;
  out["seeds"] = run_seeds;
  out["never_finish"] = run_seeds - finished;
  out["risk"] = risk;
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
  const sim::Scenario scenario =
      sim::read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""), caches.inputs);
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

}  // namespace

int seeds_needed(const Request& request, const sim::Scenario& scenario) {
  const bool recorded = std::any_of(scenario.pools.begin(), scenario.pools.end(),
                                    [](const sim::ScenarioPool& pool) { return pool.capacity.has_value(); });
  return sim::has_chances(scenario) || recorded ? request.seeds_at_risk : request.seeds;
}

nlohmann::json simulate_candidate(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches) {
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

nlohmann::json evaluate_group(const Request& request, const std::vector<PlanCandidate>& members,
                              const IsBeaten& is_beaten, EvaluationCaches& caches) {
  // If no scheme works, each candidate is still simulated, and its answer says why it cannot run.
  const FastestScheme fastest = fastest_scheme(request, members.front(), caches);
  const std::string scheme = !fastest.scheme.empty()           ? fastest.scheme
                             : members.front().scheme == "any" ? request.schemes.front()
                                                               : members.front().scheme;
  EvaluationJson answers = EvaluationJson::array();
  for (PlanCandidate candidate : members) {
    candidate.scheme = scheme;
    if (!fastest.scheme.empty()) {
      std::vector<double> least = fastest.steps.mean_s;
      if (candidate.on_demand_nodes > 0)
        for (double& step : least) step *= kOtherSample;
      const auto bounds = bounds_by_steps(request, candidate, least, fastest.steps.images);
      if (bounds && is_beaten(candidate, *bounds)) {
        answers.push_back({{"beaten", true}});
        continue;
      }
    }
    answers.push_back(simulate_candidate(request, candidate, caches));
  }
  return {{"scheme", scheme}, {"answers", std::move(answers)}};
}

}  // namespace ganymede::plan
