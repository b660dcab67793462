#include "report/candidates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "report/groups.hpp"
#include "report/numbers.hpp"
#include "report/plan_answer.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {
using Runs = std::vector<const Json*>;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::string word(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::string with_market(const std::string& place, const std::string& market) {
  return market.empty() || market == "on-demand" ? place : place + " " + market;
}

/// The quantile over the runs whose value is finite; unknown if there is none.
double quantile_of(const Runs& runs, double share, const std::function<double(const Json&)>& value) {
  std::vector<double> values;
  for (const Json* run : runs)
    if (const double one = value(*run); std::isfinite(one)) values.push_back(one);
  if (values.empty()) return kUnknown;
  std::sort(values.begin(), values.end());
  return quantile(values, share);
}

Estimate estimate(const Runs& runs, const std::function<double(const Json&)>& middle,
                  const std::function<double(const Json&)>& low, const std::function<double(const Json&)>& high) {
  std::vector<double> values, lows, highs;
  for (const Json* run : runs) {
    values.push_back(middle(*run));
    lows.push_back(low(*run));
    highs.push_back(high(*run));
  }
  const SeedQuantiles spread = seed_quantiles(values, lows, highs);
  return {spread.median, spread.low, spread.high};
}

Estimate estimate(const Json& spread) {
  return {amount(spread.at("median")), amount(spread.at("interval").at(0)), amount(spread.at("interval").at(1))};
}

double total_s(const Json& run) { return run.at("time").at("total_s").get<double>(); }

/// The run of median time; if two runs are in the middle, the faster one.
const Json* median_run(Runs runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>((runs.size() - 1) / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const Json* a, const Json* b) { return std::pair(total_s(*a), a) < std::pair(total_s(*b), b); });
  return *middle;
}

double mean_of(const Runs& runs, const std::function<double(const Json&)>& value) {
  double sum = 0;
  for (const Json* run : runs) sum += value(*run);
  return sum / static_cast<double>(runs.size());
}

bool keeps_its_gpus(const Json& run) {
  const std::string policy = word(run.at("run"), "policy");
  return policy.empty() || policy == "fixed";
}

/// The GPUs that the run requested at first, or `default_value` if the document does not say.
int asked_gpus(const Json& run, int default_value) {
  if (!run.contains("launch")) return default_value;
  double sum = 0;
  for (const Json& pool : run.at("launch").at("pools"))
    sum += pool.at("nodes").get<double>() * pool.at("gpus_per_node").get<double>();
  return int_of(sum);
}

/// How many GPUs of each node a run uses: a number, or an array for several pools; null if the run does not say.
Json asked_per_node(const Json& run) {
  if (!run.contains("launch")) return nullptr;
  Json out = Json::array();
  for (const Json& pool : run.at("launch").at("pools")) out.push_back(pool.at("gpus_per_node"));
  return out.size() == 1 ? out.front() : out;
}

/// Adds the GPUs of each node to what candidates rent, if their names would otherwise be the same.
void name_parts(std::vector<ReportCandidate>& candidates) {
  const auto place = [](const ReportCandidate& of) { return of.infrastructure + ", " + of.rented; };
  std::map<std::string, std::set<std::string>> parts;
  for (const ReportCandidate& of : candidates) parts[place(of)].insert(asked_per_node(*of.run).dump());
  for (ReportCandidate& of : candidates)
    if (const Json own = asked_per_node(*of.run); !own.is_null() && parts[place(of)].size() > 1)
      of.rented += of_each_node(own);
}

/// Provider and region of a run's pools, of several different ones joined: "aws + gcp". A result of an earlier version
/// has them in the platform's name alone.
std::pair<std::string, std::string> provider_and_region(const Json& run) {
  const std::string platform = word(run.at("run"), "platform");
  const std::size_t space = std::min(platform.find(' '), platform.size());
  if (!run.contains("launch"))
    return {platform.substr(0, space), platform.substr(std::min(space + 1, platform.size()))};
  const auto joined = [&](const char* member) {
    std::vector<std::string> names;
    for (const Json& pool : run.at("launch").at("pools"))
      if (const std::string name = word(pool, member); std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    return fmt::format("{}", fmt::join(names, " + "));
  };
  return {joined("provider"), joined("region")};
}

ReportCandidate of_runs(const Runs& runs) {
  ReportCandidate out;
  const Json& what = runs.front()->at("run");
  out.market = word(what, "market");
  out.infrastructure = with_market(word(what, "platform"), out.market);
  std::tie(out.provider, out.region) = provider_and_region(*runs.front());
  out.rented = word(what, "allocation");
  out.gpu = word(what, "gpu");
  out.scheme = word(what, "scheme");
  for (const auto& [key, usual] : {std::pair{"mode", "all-reduce"}, std::pair{"placement", "data-parallel"}})
    if (const std::string value = word(what, key); !value.empty() && value != usual) out.scheme += ", " + value;
  out.policy = word(what, "policy");
  out.scales = keeps_its_gpus(*runs.front());
  out.gpus = out.fewest_gpus = int_of(what.at("gpus"));
  if (!out.scales)
    for (const Json* run : runs) {
      const int most = int_of(run->at("run").at("gpus"));
      out.gpus = std::max(out.gpus, most);
      out.fewest_gpus = std::min({out.fewest_gpus, most, asked_gpus(*run, most)});
    }
  out.runs = static_cast<int>(runs.size());
  const auto end = [](const char* part, const char* interval, std::size_t which) {
    return [=](const Json& run) { return amount(run.at(part).at(interval).at(which)); };
  };
  out.time_s = estimate(runs, total_s, end("time", "interval_s", 0), end("time", "interval_s", 1));
  out.usd = estimate(
      runs, [](const Json& run) { return amount(run.at("cost").at("total_usd")); }, end("cost", "interval_usd", 0),
      end("cost", "interval_usd", 1));
  out.ranked_usd = out.usd.middle;
  out.run = median_run(runs);
  if (runs.size() == 1) {
    out.spot_usd = instance_usd(*out.run, true);
    out.instance_usd = instance_usd(*out.run, false);
  }
  out.images = quantile_of(runs, 0.5, [](const Json& run) { return run.at("time").at("images").get<double>(); });
  out.usd_per_gpu_hour = quantile_of(runs, 0.5, [](const Json& run) {
    const double hours = run.value("gpu_hours", 0.0);
    return hours > 0 ? amount(run.at("cost").at("total_usd")) / hours : kUnknown;
  });
  out.images_per_s = quantile_of(runs, 0.5, [](const Json& run) {
    const double training = run.at("time").at("step_mean_s").get<double>() * run.at("time").at("steps").get<double>();
    return training > 0 ? run.at("time").at("images").get<double>() / training : kUnknown;
  });
  out.gpu_busy = mean_of(runs, [](const Json& run) { return run.at("utilization").at("gpu_busy").get<double>(); });
  const auto energy = [](const char* what_of) {
    return [=](const Json& run) {
      return run.at("energy").is_null() ? kUnknown : run.at("energy").at(what_of).get<double>();
    };
  };
  out.kwh = quantile_of(runs, 0.5, energy("kwh"));
  out.kg_co2e = quantile_of(runs, 0.5, energy("kg_co2e"));
  out.losses = mean_of(runs, [](const Json& run) { return run.at("life").at("losses").get<double>(); });
  out.met_share = mean_of(runs, [](const Json& run) { return run.at("goals").at("met").get<bool>() ? 1.0 : 0.0; });
  out.has_ledger = true;
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    out.gpu_seconds[use] = mean_of(
        runs, [&](const Json& run) { return run.at("gpu_seconds").value(std::string(kGpuUseNames.at(use)), 0.0); });
  out.of_runs = runs;
  return out;
}

ReportCandidate of_plan(const Json& row, const Json& request) {
  ReportCandidate out;
  out.market = word(row, "market");
  out.provider = word(row, "provider");
  out.region = word(row, "region");
  out.infrastructure = plan_place(row);
  out.rented = plan_nodes(row);
  if (const std::string batch = plan_batch(row, request); !batch.empty()) out.rented += ", " + batch;
  out.gpu = word(row, "gpu");
  out.gpus = out.fewest_gpus = int_of(row.at("gpus"));
  out.scheme = word(row, "scheme");
  out.policy = word(row, "policy");
  out.scales = out.policy == "fixed";
  if (const std::string checkpoint = word(row, "checkpoint"); !checkpoint.empty())
    out.policy += ", checkpoints " + checkpoint;
  const auto read = [&](const char* what) {
    return Estimate{amount(row.at(what).at("median")), amount(row.at(what).at("interval").at(0)),
                    amount(row.at(what).at("interval").at(1))};
  };
  out.time_s = read("time_s");
  out.usd = read("usd");
  const Json& usd = row.at("usd");
  const bool unknown_carbon = word(request, "objective") == "carbon" && row.at("kg_co2e").is_null();
  if (row.value("verdict", "meets") != "meets" || unknown_carbon)
    out.ranked_usd = kUnknown;
  else
    out.ranked_usd = amount(usd.at(usd.contains("at_worst_prices") ? "at_worst_prices" : "median"));
  const PlanMarks marks = plan_marks(row);
  out.risk_assumed = marks.risk_assumed;
  out.price_doubtful = marks.price_doubtful;
  out.runs = request.value("seeds", 1);
  // A plan keeps no bills. The instances' part of the cost is the hourly price of the nodes for the whole time.
  const double instances = std::min(out.usd.middle, amount(row.at("usd_per_hour")) * out.time_s.middle / 3600);
  (out.market == "spot" ? out.spot_usd : out.instance_usd) = instances;
  out.images = row.contains("quality") ? row.at("quality").at("images").at("median").get<double>()
                                       : request.at("images").get<double>();
  out.usd_per_gpu_hour = amount(row.at("usd_per_hour")) / out.gpus;
  // The rate over the whole time would be that of the wait for spot nodes. A plan of an earlier version has no other.
  out.images_per_s = row.value("images_per_s", kUnknown);
  out.gpu_busy = row.at("gpu_busy").get<double>();
  out.kwh = kUnknown;
  out.kg_co2e = row.at("kg_co2e").is_null() ? kUnknown : amount(row.at("kg_co2e").at("median"));
  out.losses = row.at("losses_mean").get<double>();
  out.met_share = row.value("probability", row.at("met_share").get<double>());
  out.met = plan_probability(row);
  out.chosen = row.at("chosen").get<bool>();
  return out;
}

/// Groups of runs that differ in their seed alone. The number of GPUs that a policy held in the end is an outcome, so
/// it does not separate groups.
std::string kind_of(const Json& run) {
  std::string key;
  for (const char* part : {"platform", "market", "allocation", "gpu", "scheme", "mode", "placement", "policy"})
    key += word(run.at("run"), part) + "\n";
  key += asked_per_node(run).dump() + "\n";
  return keeps_its_gpus(run) ? key + run.at("run").at("gpus").dump() : key;
}

}  // namespace

std::string gpus_of(const ReportCandidate& of) {
  const std::string most = fmt::format("{} x {}", of.gpus, of.gpu);
  return of.fewest_gpus == of.gpus ? most : fmt::format("{} to {}", of.fewest_gpus, most);
}

double instance_usd(const Json& run, bool spot) {
  double sum = 0;
  for (const Json& item : run.at("cost").at("items"))
    if (word(item, "item") == "instance-hours" && (word(item, "market") == "spot") == spot)
      sum += amount(item.at("usd"));
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

std::vector<ReportCandidate> candidates_of(const Json& document) {
  std::vector<ReportCandidate> out;
  const auto schema = document.at("schema").get<std::string>();
  if (schema == "ganymede.result/1") {
    out.push_back(of_runs({&document}));
    out.front().met = percent(out.front().met_share);
    if (!document.contains("seeds")) return out;
    const Json& seeds = document.at("seeds");
    out.front().time_s = estimate(seeds.at("time_s"));
    out.front().usd = estimate(seeds.at("usd"));
    out.front().ranked_usd = out.front().usd.middle;
    out.front().losses = amount(seeds.at("losses_mean"));
    out.front().met_share = amount(seeds.at("met")) / amount(seeds.at("count"));
    out.front().met = fmt::format("{} of {}", seeds.at("met").dump(), seeds.at("count").dump());
    return out;
  }
  if (schema == "ganymede.plan/1") {
    for (const Json& row : document.at("simulated")) out.push_back(of_plan(row, document.at("request")));
    return out;
  }
  std::vector<Runs> groups;
  std::map<std::string, std::size_t> known;
  for (const Json& run : document.at("runs")) {
    const auto [place, is_new] = known.try_emplace(kind_of(run), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&run);
  }
  for (const Runs& runs : groups) {
    out.push_back(of_runs(runs));
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

}  // namespace ganymede::report
