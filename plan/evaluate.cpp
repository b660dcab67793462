#include "plan/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "plan/bounds.hpp"
#include "sim/run/seeds.hpp"
#include "sim/run/simulate.hpp"
#include "sim/run/step_distribution.hpp"

namespace ganymede {
namespace {

using EvaluationJson = nlohmann::json;

/// The steps of some nodes on two markets are sampled apart from those of the same nodes on one: to a relative
/// half-width of 0.5 % at 95 %, of which this leaves four.
constexpr double kSampledApart = 0.98;

double usd_of(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

/// A run's bill, and what it would be at the ends of what doubtful prices may be.
struct RunCost {
  double usd = 0, low = 0, high = 0;  ///< at the stated prices; at the lowest and the highest ones
};

RunCost cost_of(const Request& request, const Scenario& scenario, const Result& run) {
  RunCost cost;
  cost.usd = cost.low = cost.high = usd_of(run.bill.total());
  for (const PoolUse& use : run.pools)
    for (const ScenarioPool& pool : scenario.pools) {
      if (pool.name != use.pool) continue;
      const PriceDoubt doubt = price_doubt(pool.instance(), pool.price, request.price_age);
      cost.low -= usd_of(use.usd) * (1 - doubt.low);
      cost.high += usd_of(use.usd) * (doubt.high - 1);
    }
  return cost;
}

/// Values of the runs that finish, with the ends of their intervals.
struct Values {
  std::vector<double> values, lows, highs;
  void add(double value, double low, double high) {
    values.push_back(value);
    lows.push_back(low);
    highs.push_back(high);
  }
  EvaluationJson json() const {
    const SeedSpread spread = over_seeds(values, lows, highs);
    return {spread.median, spread.low, spread.high};
  }
};

/// Runs of all seeds, of which some may never finish: these miss the goals, and everything else is of the others.
EvaluationJson evaluate_seeds(const Request& request, const PlanCandidate& candidate) {
  Scenario scenario = read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""));
  const int seeds = runs_of(request, scenario);
  Values time, usd, worst, kg;
  double busy = 0, losses = 0, met = 0;
  // So many misses settle that it does not meet the goals, and how far it misses them needs no more seeds than are run
  // where nothing is left to chance.
  const int misses_at_most = static_cast<int>(std::floor(seeds * (1 - request.certainty) + 1e-9));
  int run_seeds = 0, finished = 0;
  bool carbon = true;
  std::string risk, never;
  EvaluationJson out;
  for (int i = 0; i < seeds && (i - met <= misses_at_most || i < request.seeds); ++i) {
    ++run_seeds;
    set_seed(scenario, request.seed + static_cast<std::uint64_t>(i));
    Result run;
    try {
      run = simulate(scenario);
    } catch (const Infeasible& error) {
      never = error.what();
      continue;
    }
    ++finished;
    risk = less_sure(risk, run.risk);
    const RunCost cost = cost_of(request, scenario, run);
    const double scale = cost.usd > 0 ? 1 / cost.usd : 0;
    const double high = run.cost_usd.high * (cost.usd > 0 ? cost.high * scale : 1);
    time.add(run.total.si, run.interval_s.low, run.interval_s.high);
    usd.add(cost.usd, run.cost_usd.low * (cost.usd > 0 ? cost.low * scale : 1), high);
    worst.add(cost.high, cost.high, cost.high);
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
  if (2 * finished < run_seeds) throw Infeasible(never);
  out["time"] = time.json();
  out["usd"] = usd.json();
  out["usd_at_worst"] = worst.json()[0];
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

/// The mean steps of a candidate's whole allocation, by stage: the very ones that its runs take.
struct Steps {
  std::vector<double> mean_s;
  double images = 0;  ///< that a step trains
  double per_image_s = 0;
};

Steps steps_of(const Request& request, PlanCandidate candidate) {
  static const RequestPolicy kAll{{{"name", default_policy().name}}, &default_policy()};
  candidate.policy = &kAll;
  candidate.on_demand_nodes = 0;
  const Scenario scenario = read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""));
  StepTimes times(scenario);
  Steps steps;
  for (std::size_t stage = 0; stage < scenario.stages.size(); ++stage) {
    Configuration whole;
    whole.nodes = {candidate.nodes};
    whole.stage = stage;
    const StepDistribution& known = times.of(whole);
    steps.mean_s.push_back(known.mean.si);
    steps.images = known.images;
    steps.per_image_s += scenario.stage_shares[stage] * known.mean.si / known.images;
  }
  return steps;
}

/// The fastest of the schemes that can serve a candidate; none can: the reason why the last one cannot.
struct Race {
  std::string scheme, why_none;
  Steps steps;
};

Race fastest_scheme(const Request& request, PlanCandidate candidate) {
  Race race;
  const std::vector<std::string> schemes =
      candidate.scheme == "any" ? request.schemes : std::vector<std::string>{candidate.scheme};
  for (const std::string& scheme : schemes) {
    candidate.scheme = scheme;
    try {
      Steps steps = steps_of(request, candidate);
      if (!race.scheme.empty() && steps.per_image_s >= race.steps.per_image_s) continue;
      race.scheme = scheme;
      race.steps = std::move(steps);
    } catch (const ConfigError& error) {
      race.why_none = error.what();
    } catch (const Infeasible& error) {
      race.why_none = error.what();
    }
  }
  return race;
}

}  // namespace

int runs_of(const Request& request, const Scenario& scenario) {
  const bool recorded = std::any_of(scenario.pools.begin(), scenario.pools.end(),
                                    [](const ScenarioPool& pool) { return pool.capacity.has_value(); });
  return has_chances(scenario) || recorded ? request.seeds_at_risk : request.seeds;
}

nlohmann::json simulate_candidate(const Request& request, const PlanCandidate& candidate) {
  try {
    return evaluate_seeds(request, candidate);
  } catch (const ConfigError& error) {  // such as a storage that this catalog does not have
    return {{"invalid", error.what()}};
  } catch (const Infeasible& error) {
    return {{"impossible", error.what()}};
  } catch (const Failure& error) {
    return {{"impossible", error.what()}};
  }
}

nlohmann::json evaluate_group(const Request& request, const std::vector<PlanCandidate>& members, const Beaten& beaten) {
  // What keeps all schemes from it keeps each candidate from it, which then says why.
  const Race race = fastest_scheme(request, members.front());
  const std::string scheme = !race.scheme.empty()              ? race.scheme
                             : members.front().scheme == "any" ? request.schemes.front()
                                                               : members.front().scheme;
  EvaluationJson answers = EvaluationJson::array();
  for (PlanCandidate candidate : members) {
    candidate.scheme = scheme;
    if (!race.scheme.empty()) {
      std::vector<double> least = race.steps.mean_s;
      if (candidate.on_demand_nodes > 0)
        for (double& step : least) step *= kSampledApart;
      const auto bounds = bounds_by_steps(request, candidate, least, race.steps.images);
      if (bounds && beaten(candidate, *bounds)) {
        answers.push_back({{"beaten", true}});
        continue;
      }
    }
    answers.push_back(simulate_candidate(request, candidate));
  }
  return {{"scheme", scheme}, {"answers", std::move(answers)}};
}

}  // namespace ganymede
