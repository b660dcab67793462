#include "report/candidates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "common/usd.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {
using documents::Result;
using Runs = std::vector<const Result*>;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::string with_market(const std::string& place, const std::string& market) {
  return market.empty() || market == "on-demand" ? place : place + " " + market;
}

/// The quantile over the runs whose value is finite; unknown if there is none.
double quantile_of(const Runs& runs, double share, const std::function<double(const Result&)>& value) {
  std::vector<double> values;
  for (const Result* run : runs)
    if (const double one = value(*run); std::isfinite(one)) values.push_back(one);
  if (values.empty()) return kUnknown;
  std::sort(values.begin(), values.end());
  return quantile(values, share);
}

Estimate estimate(const Runs& runs, const std::function<double(const Result&)>& middle,
                  const std::function<double(const Result&)>& low, const std::function<double(const Result&)>& high) {
  std::vector<double> values, lows, highs;
  for (const Result* run : runs) {
    values.push_back(middle(*run));
    lows.push_back(low(*run));
    highs.push_back(high(*run));
  }
  const SeedQuantiles spread = seed_quantiles(values, lows, highs);
  return {spread.median, spread.low, spread.high};
}

Estimate estimate(const SeedQuantiles& spread) { return {spread.median, spread.low, spread.high}; }

/// The run of median time; if two runs are in the middle, the faster one.
const Result* median_run(Runs runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>((runs.size() - 1) / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const Result* a, const Result* b) { return std::pair(a->total, a) < std::pair(b->total, b); });
  return *middle;
}

double mean_of(const Runs& runs, const std::function<double(const Result&)>& value) {
  double sum = 0;
  for (const Result* run : runs) sum += value(*run);
  return sum / static_cast<double>(runs.size());
}

bool keeps_its_gpus(const Result& run) { return run.policy.empty() || run.policy == "fixed"; }

/// The GPUs that the run requested at first, or `default_value` if the document does not say.
int asked_gpus(const Result& run, int default_value) {
  int sum = 0;
  for (const documents::LaunchPool& pool : run.launch.pools) sum += pool.nodes * pool.gpus_per_node;
  return run.launch.pools.empty() ? default_value : sum;
}

/// How many GPUs of each node a run uses: a number, or an array for several pools; null if the run does not say.
Json asked_per_node(const Result& run) {
  if (run.launch.pools.empty()) return nullptr;
  Json out = Json::array();
  for (const documents::LaunchPool& pool : run.launch.pools) out.push_back(pool.gpus_per_node);
  return out.size() == 1 ? out.front() : out;
}

/// Adds the GPUs of each node to what candidates rent, if their names would otherwise be the same.
void name_parts(std::vector<ReportCandidate>& candidates) {
  const auto place = [](const ReportCandidate& candidate) {
    return candidate.infrastructure + ", " + candidate.rented;
  };
  std::map<std::string, std::set<std::string>> parts;
  for (const ReportCandidate& candidate : candidates)
    parts[place(candidate)].insert(asked_per_node(*candidate.run).dump());
  for (ReportCandidate& candidate : candidates)
    if (const Json own = asked_per_node(*candidate.run); !own.is_null() && parts[place(candidate)].size() > 1)
      candidate.rented += of_each_node(own);
}

/// Provider and region of a run's pools, of several different ones joined: "aws + gcp". A result of an earlier version
/// has them in the platform's name alone.
std::pair<std::string, std::string> provider_and_region(const Result& run) {
  const std::size_t space = std::min(run.platform.find(' '), run.platform.size());
  if (run.launch.pools.empty())
    return {run.platform.substr(0, space), run.platform.substr(std::min(space + 1, run.platform.size()))};
  const auto joined = [&](std::string documents::LaunchPool::*member) {
    std::vector<std::string> names;
    for (const documents::LaunchPool& pool : run.launch.pools)
      if (std::find(names.begin(), names.end(), pool.*member) == names.end()) names.push_back(pool.*member);
    return fmt::format("{}", fmt::join(names, " + "));
  };
  return {joined(&documents::LaunchPool::provider), joined(&documents::LaunchPool::region)};
}

ReportCandidate of_runs(const Runs& runs) {
  ReportCandidate out;
  const Result& first = *runs.front();
  out.market = first.market;
  out.infrastructure = with_market(first.platform, out.market);
  std::tie(out.provider, out.region) = provider_and_region(first);
  out.rented = first.allocation;
  out.gpu = first.gpu;
  out.scheme = first.scheme;
  if (!first.mode.empty() && first.mode != "all-reduce") out.scheme += ", " + first.mode;
  if (!first.placement.empty() && first.placement != "data-parallel") out.scheme += ", " + first.placement;
  out.policy = first.policy;
  out.scales = keeps_its_gpus(first);
  out.gpus = out.fewest_gpus = first.gpus;
  if (!out.scales)
    for (const Result* run : runs) {
      out.gpus = std::max(out.gpus, run->gpus);
      out.fewest_gpus = std::min({out.fewest_gpus, run->gpus, asked_gpus(*run, run->gpus)});
    }
  out.runs = static_cast<int>(runs.size());
  out.time_s = estimate(
      runs, [](const Result& run) { return run.total.si; }, [](const Result& run) { return run.interval_s.low; },
      [](const Result& run) { return run.interval_s.high; });
  out.usd = estimate(
      runs, [](const Result& run) { return usd_of(run.usd); }, [](const Result& run) { return run.cost_usd.low; },
      [](const Result& run) { return run.cost_usd.high; });
  out.ranked_usd = out.usd.middle;
  out.run = median_run(runs);
  if (runs.size() == 1) {
    out.spot_usd = instance_usd(*out.run, true);
    out.instance_usd = instance_usd(*out.run, false);
  }
  out.images = quantile_of(runs, 0.5, [](const Result& run) { return static_cast<double>(run.images); });
  out.usd_per_gpu_hour = quantile_of(runs, 0.5, [](const Result& run) {
    const double hours = run.gpu_seconds.hours();
    return hours > 0 ? usd_of(run.usd) / hours : kUnknown;
  });
  out.images_per_s = quantile_of(runs, 0.5, [](const Result& run) {
    const double training = run.step_mean.si * static_cast<double>(run.steps);
    return training > 0 ? static_cast<double>(run.images) / training : kUnknown;
  });
  out.gpu_busy = mean_of(runs, [](const Result& run) { return run.gpu_busy; });
  out.kwh = quantile_of(runs, 0.5, [](const Result& run) { return run.energy ? run.energy->kwh : kUnknown; });
  out.kg_co2e = quantile_of(runs, 0.5, [](const Result& run) { return run.energy ? run.energy->kg_co2e : kUnknown; });
  out.losses = mean_of(runs, [](const Result& run) { return static_cast<double>(run.losses); });
  out.met_share = mean_of(runs, [](const Result& run) { return run.met ? 1.0 : 0.0; });
  out.has_ledger = true;
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    out.gpu_seconds[use] = mean_of(runs, [&](const Result& run) { return run.gpu_seconds.by_use.at(use); });
  out.of_runs = runs;
  return out;
}

Estimate estimate(const documents::Measure& measure) {
  return {measure.median, measure.interval.low, measure.interval.high};
}

ReportCandidate of_plan(const documents::PlanRow& row, const documents::PlanRequest& request) {
  ReportCandidate out;
  out.market = row.market;
  out.provider = row.provider;
  out.region = row.region;
  out.infrastructure = plan_place(row);
  out.rented = plan_nodes(row);
  if (const std::string batch = plan_batch(row, request); !batch.empty()) out.rented += ", " + batch;
  out.gpu = row.gpu;
  out.gpus = out.fewest_gpus = row.gpus;
  out.scheme = row.scheme;
  out.policy = row.policy;
  out.scales = out.policy == "fixed";
  if (row.checkpoint) out.policy += ", checkpoints " + *row.checkpoint;
  out.time_s = estimate(row.time_s);
  out.usd = {row.usd.median, row.usd.interval.low, row.usd.interval.high};
  const bool unknown_carbon = request.objective == "carbon" && !row.kg_co2e;
  out.ranked_usd =
      row.verdict != "meets" || unknown_carbon ? kUnknown : row.usd.at_worst_prices.value_or(row.usd.median);
  const PlanMarks marks = plan_marks(row);
  out.risk_assumed = marks.risk_assumed;
  out.price_doubtful = marks.price_doubtful;
  out.runs = request.seeds;
  // A plan keeps no bills. The instances' part of the cost is the hourly price of the nodes for the whole time.
  const double hourly = row.usd_per_hour ? usd_of(*row.usd_per_hour) : kUnknown;
  const double instances = std::min(out.usd.middle, hourly * out.time_s.middle / 3600);
  (out.market == "spot" ? out.spot_usd : out.instance_usd) = instances;
  out.images = row.quality ? row.quality->images.median : static_cast<double>(request.images.value_or(0));
  out.usd_per_gpu_hour = hourly / out.gpus;
  // The rate over the whole time would be that of the wait for spot nodes. A plan of an earlier version has no other.
  out.images_per_s = row.images_per_s.value_or(kUnknown);
  out.gpu_busy = row.gpu_busy;
  out.kwh = kUnknown;
  out.kg_co2e = row.kg_co2e ? row.kg_co2e->median : kUnknown;
  out.losses = row.losses_mean;
  out.met_share = row.probability.value_or(row.met_share);
  out.met = plan_probability(row);
  out.chosen = row.chosen;
  return out;
}

/// Groups of runs that differ in their seed alone. The number of GPUs that a policy held in the end is an outcome, so
/// it does not separate groups.
std::string kind_of(const Result& run) {
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", run.platform, run.market, run.allocation, run.gpu, run.scheme,
                  run.mode, run.placement, run.policy, asked_per_node(run).dump());
  return keeps_its_gpus(run) ? key + std::to_string(run.gpus) : key;
}

}  // namespace

std::string gpus_of(const ReportCandidate& candidate) {
  const std::string most = fmt::format("{} x {}", candidate.gpus, candidate.gpu);
  return candidate.fewest_gpus == candidate.gpus ? most : fmt::format("{} to {}", candidate.fewest_gpus, most);
}

double instance_usd(const Result& run, bool spot) {
  double sum = 0;
  for (const documents::BillItem& item : run.bill.items)
    if (item.item == "instance-hours" && (item.market == "spot") == spot) sum += usd_of(item.usd);
  return sum;
}

double amount(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return kUnknown;
  const auto text = value.get<std::string>();
  char* end = nullptr;
  const double parsed = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? kUnknown : parsed;
}

std::vector<ReportCandidate> candidate_of(const Result& run) {
  ReportCandidate one = of_runs({&run});
  one.met = percent(one.met_share);
  if (const auto& seeds = run.seeds) {
    one.time_s = estimate(seeds->time_s);
    one.usd = estimate(seeds->usd);
    one.ranked_usd = one.usd.middle;
    one.losses = seeds->losses_mean;
    one.met_share = static_cast<double>(seeds->met) / seeds->count;
    one.met = fmt::format("{} of {}", seeds->met, seeds->count);
  }
  return {one};
}

std::vector<ReportCandidate> candidates_of(const documents::Plan& plan) {
  std::vector<ReportCandidate> out;
  for (const documents::PlanRow& row : plan.simulated) out.push_back(of_plan(row, plan.request));
  return out;
}

std::vector<ReportCandidate> candidates_of(const std::vector<Result>& runs) {
  std::vector<ReportCandidate> out;
  std::vector<Runs> groups;
  std::map<std::string, std::size_t> known;
  for (const Result& run : runs) {
    const auto [place, is_new] = known.try_emplace(kind_of(run), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&run);
  }
  for (const Runs& group : groups) {
    out.push_back(of_runs(group));
    out.back().met = percent(out.back().met_share);
  }
  name_parts(out);
  return out;
}

std::vector<std::size_t> pareto_of(const std::vector<ReportCandidate>& candidates) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (std::isfinite(candidates[i].ranked_usd) && std::isfinite(candidates[i].time_s.middle)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(candidates[a].time_s.middle, candidates[a].ranked_usd) <
           std::pair(candidates[b].time_s.middle, candidates[b].ranked_usd);
  });
  std::vector<std::size_t> out;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order)
    if (candidates[i].ranked_usd < least) {
      least = candidates[i].ranked_usd;
      out.push_back(i);
    }
  return out;
}

namespace {
/// The state of one pool between two of its events.
struct Pool {
  int held = 0, asked = 0;
  int waiting = 0;  // nodes among `asked` that the provider does not have at the moment
  double since = 0;
};

/// Changes the pool as an event says.
void apply(Pool& pool, const std::string& what, int nodes) {
  if (what == "requested") pool.asked += nodes;
  if (what == "waiting") pool.waiting += nodes;
  if (what == "provisioned") {
    pool.asked -= std::min(nodes, pool.asked);
    pool.waiting = std::min(pool.waiting, pool.asked);
    pool.held += nodes;
  }
  if (what == "lost" || what == "crashed") pool.held = std::max(0, pool.held - nodes);
  if (what == "released") {
    const int gone = std::min(nodes, pool.held);
    pool.held -= gone;
    pool.asked = std::max(0, pool.asked - (nodes - gone));
  }
}

}  // namespace

std::vector<Holding> holdings_of(const documents::Result& run) {
  std::map<std::string, Pool> pools;
  std::vector<Holding> out;
  const auto end_holding = [&](const std::string& name, Pool& pool, double at) {
    if (at > pool.since && pool.held + pool.asked > 0) out.push_back({name, pool.since, at, pool.held, pool.asked});
    pool.since = at;
  };
  for (const documents::RunEvent& event : run.events) {
    const double at = event.at.si;
    if (event.what == "ready")
      // Training begins, so all requested nodes have started except those that the provider does not have.
      for (auto& [name, pool] : pools) {
        if (pool.asked == pool.waiting) continue;
        end_holding(name, pool, at);
        pool.held += pool.asked - pool.waiting;
        pool.asked = pool.waiting;
      }
    if (event.pool.empty() || event.nodes == 0) continue;
    Pool& pool = pools[event.pool];
    Pool after = pool;
    apply(after, event.what, event.nodes);
    if (after.held != pool.held || after.asked != pool.asked) end_holding(event.pool, pool, at);
    after.since = pool.since;
    pool = after;
  }
  for (auto& [name, pool] : pools) end_holding(name, pool, run.total.si);
  std::stable_sort(out.begin(), out.end(), [](const Holding& a, const Holding& b) { return a.from_s < b.from_s; });
  return out;
}

}  // namespace ganymede::report
