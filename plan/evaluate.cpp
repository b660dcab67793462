#include "plan/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "common/usd.hpp"
#include "plan/bounds.hpp"
#include "plan/chances.hpp"
#include "plan/choice.hpp"
#include "plan/run_sums.hpp"
#include "plan/spot_waits.hpp"
#include "sim/run/simulate.hpp"
#include "sim/steps/worker_models.hpp"

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

bool beats(const Front& front, const PlanCandidate& candidate, const RunsAtLeast& runs) {
  return front.beats(candidate, {runs.time_s, 0, runs.usd_at_worst});
}

/// A run of these is given up once so small a share of what it has taken and cost is beaten: then later searches, in
/// which less is beaten, need not simulate it again.
constexpr double kShareToGiveUp = 0.5;

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

/// The runs of a candidate, one for each of its seeds, until they are too many that miss the goals or `front` beats it.
class SeedRuns {
 public:
  SeedRuns(const Request& request, const PlanCandidate& candidate, const Bounds& least, const Front& front,
           sim::Scenario& scenario, std::vector<std::uint64_t> seeds, std::vector<std::int64_t> images)
      : request_(request),
        candidate_(candidate),
        least_(least),
        front_(front),
        scenario_(scenario),
        seeds_(std::move(seeds)),
        images_(std::move(images)) {}

  /// Simulates up to `most` runs. False if they are beaten; `out` then says by what of them. A `trial` has no intervals
  /// and gives up runs that are beaten, which then have what they had taken: if it returns true, only that counts.
  bool simulate(int most, bool trial, PlannedRun& out) {
    // With more misses than this the candidate cannot meet the goals. To tell how far it misses them, the seeds of a
    // candidate without risk are enough.
    const double misses_max = count() * (1 - request_.certainty) + 1e-5;
    sums = {};
    given_up_.clear();
    for (int i = 0; i < most && (misses() <= misses_max || i < request_.seeds); ++i) {
      ++sums.runs;
      sim::set_seed(scenario_, seeds_[static_cast<std::size_t>(i)]);
      if (!images_.empty()) sim::train_to_fid(scenario_, images_[static_cast<std::size_t>(i)]);
      try {
        if (trial)
          try_run();
        else
          sums.add(request_, scenario_, sim::simulate(scenario_, request_.caches->steps));
      } catch (const Infeasible& error) {
        why_never = error.what();
      }
      if (beaten(out)) return false;
    }
    return true;
  }
  int count() const { return static_cast<int>(seeds_.size()); }

  RunSums sums;
  std::string why_never;  ///< why the last run that never finishes does not

 private:
  void try_run() {
    Bounds so_far;
    const auto gives_up = [&](sim::Nanoseconds now, const std::vector<sim::Node>& nodes) {
      so_far = bounds_of_unfinished(request_, scenario_, now, nodes);
      return beats(front_, candidate_, {kShareToGiveUp * so_far.time_s, kShareToGiveUp * so_far.usd_at_worst});
    };
    const auto run = sim::simulate_unless(gives_up, scenario_, request_.caches->steps);
    if (run)
      sums.add(request_, scenario_, *run);
    else
      given_up_.push_back({so_far.time_s, so_far.usd_at_worst});
  }

  double misses() const { return sums.runs - (request_.sure ? std::min(sums.met, sums.chance) : sums.chance); }

  bool beaten(PlannedRun& out) const {
    const std::vector<double>&times = sums.time.values, &costs = sums.usd_at_worst.values;
    const bool half = 2 * sums.runs >= count();
    if (!half && (sums.runs != kRunsToBeat || (times.empty() && given_up_.empty()))) return false;
    constexpr double kNone = std::numeric_limits<double>::infinity();
    RunsAtLeast now{kNone, kNone};
    // The median is that of runs that finish, as those that were given up may or may not.
    if (const int finish = count() - static_cast<int>(given_up_.size()); half && finish > 0)
      now = {least_median(times, finish, images_.empty() ? least_.time_s : 0),
             least_median(costs, finish, images_.empty() ? least_.usd_at_worst : 0)};
    else if (!half && !times.empty())
      now = {std::ranges::min(times), std::ranges::min(costs)};
    for (const RunsAtLeast& run : given_up_)
      now = {std::min(now.time_s, run.time_s), std::min(now.usd_at_worst, run.usd_at_worst)};
    now = {std::max(now.time_s, least_.time_s), std::max(now.usd_at_worst, least_.usd_at_worst)};
    const bool beaten_now = beats(front_, candidate_, now);
    if (beaten_now || sums.runs == kRunsToBeat) out.at_least = now;
    return beaten_now;
  }

  const Request& request_;
  const PlanCandidate& candidate_;
  const Bounds& least_;
  const Front& front_;
  sim::Scenario& scenario_;
  const std::vector<std::uint64_t> seeds_;
  const std::vector<std::int64_t> images_;  // of each run, if an FID is the goal
  std::vector<RunsAtLeast> given_up_;       // what runs had taken and cost when they were
};

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
  std::vector<std::int64_t> images;
  if (const auto& goal = scenario.quality)
    for (int i = 0; i < seeds; ++i)
      images.push_back(drawn_images({goal->images.median, goal->images.low, goal->images.high, kOf90}, i, seeds));
  if (decided_by_waits(request, candidate, least, front, scenario, each, images, out)) return;
  SeedRuns runs(request, candidate, least, front, scenario, std::move(each), std::move(images));
  // Most candidates are beaten by their first runs, which need no intervals for that.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (front.beats(candidate, {kNever, kNever, kNever}) &&
      !runs.simulate(std::min({kRunsToBeat, request.seeds, seeds}), /*trial=*/true, out))
    return;
  if (!runs.simulate(seeds, /*trial=*/false, out)) return;
  if (2 * runs.sums.finished < runs.sums.runs) throw Infeasible(runs.why_never);
  const RunsAtLeast first = out.at_least;
  out = runs.sums.planned();
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
  sim::ScenarioSteps times(scenario, request.caches->steps, /*intervals=*/false);
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
    out.runs[i].at_least = {least.time_s, least.usd_at_worst};
    if (front.beats(candidate, least) || front.beats(candidate, candidate.known)) continue;
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
