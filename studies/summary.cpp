#include "studies/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::studies {
namespace {
struct Measure {
  const char* name;
  double RunFacts::*value;
  double RunFacts::*low = nullptr;  // ends of the interval of the stated error; null if there is none
  double RunFacts::*high = nullptr;
};

constexpr Measure kMeasures[] = {{"time_s", &RunFacts::time_s, &RunFacts::time_low_s, &RunFacts::time_high_s},
                                 {"usd", &RunFacts::usd, &RunFacts::usd_low, &RunFacts::usd_high},
                                 {"gpu_hours", &RunFacts::gpu_hours},
                                 {"kg_co2e", &RunFacts::kg_co2e}};

/// The numbers of a run's facts in the order of facts_line().
constexpr double RunFacts::*kNumbers[] = {
    &RunFacts::time_s,   &RunFacts::time_low_s, &RunFacts::time_high_s, &RunFacts::usd,    &RunFacts::usd_low,
    &RunFacts::usd_high, &RunFacts::gpu_hours,  &RunFacts::kg_co2e,     &RunFacts::losses, &RunFacts::lost_training_s};

using Runs = std::vector<const RunFacts*>;

OrderedJson group_json(const Runs& runs) {
  OrderedJson group = OrderedJson::parse(runs.front()->group->place);
  group["policy"] = runs.front()->group->policy;
  group["runs"] = runs.size();
  for (const Measure& measure : kMeasures) {
    std::vector<double> values, lows, highs;
    for (const RunFacts* run : runs) {
      values.push_back(run->*measure.value);
      lows.push_back(measure.low ? run->*measure.low : values.back());
      highs.push_back(measure.high ? run->*measure.high : values.back());
    }
    const SeedQuantiles spread = seed_quantiles(values, lows, highs);
    group[measure.name] = {{"median", spread.median}, {"p5", spread.p5}, {"p95", spread.p95}};
    if (measure.low) group[measure.name]["interval"] = {spread.low, spread.high};
  }
  const auto count = static_cast<double>(runs.size());
  double losses = 0, met = 0, lost = 0;
  for (const RunFacts* run : runs) {
    losses += run->losses / count;
    lost += run->lost_training_s / count;
    met += (run->met ? 1 : 0) / count;
  }
  group["losses_mean"] = losses;
  group["lost_training_s_mean"] = lost;
  group["met_share"] = met;
  return group;
}

/// The GPUs that are used in each node: a number, or an array if there are several pools.
OrderedJson gpus_per_node(const OrderedJson& pools) {
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& pool : pools) out.push_back(pool.at("gpus_per_node").get<int>());
  return out.size() == 1 ? out.front() : out;
}

/// Precondition: there are values. Puts only those in the middle where sorting would, since quantile() reads no others.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (middle + 1 != values.end()) std::iter_swap(middle + 1, std::min_element(middle + 1, values.end()));
  return quantile(values, 0.5);
}

/// Compares `runs` with `base` on the seeds that both have: the relative difference of the medians, with an interval
/// from resampling the seeds (both policies' runs of a seed together). Also the mean of the relative differences with
/// Student's t interval, because a policy that improves only the worst seeds changes the mean and not the median.
OrderedJson compare(const Runs& runs, const Runs& base, const Measure& measure) {
  // With five seeds, all differences have the same sign by chance in 1 of 16 cases, which is more than 5 %.
  constexpr std::size_t kMinSeeds = 6;
  // Many seeds are resampled less often: the ends of a narrow interval then scatter a little.
  constexpr std::size_t kMostResamples = 2000, kLeastResamples = 200, kMostDraws = 20'000'000;
  std::map<std::uint64_t, double> of_base;
  for (const RunFacts* run : base) of_base[run->seed] = run->*measure.value;
  std::vector<double> mine, others, relative;
  for (const RunFacts* run : runs) {
    const auto other = of_base.find(run->seed);
    if (other == of_base.end() || other->second <= 0) continue;
    mine.push_back(run->*measure.value);
    others.push_back(other->second);
    relative.push_back(mine.back() / others.back() - 1);
  }
  if (mine.size() < kMinSeeds) return nullptr;
  RandomStream random(0, "studies/bootstrap");
  std::vector<double> resampled;
  const std::size_t resamples = std::clamp(kMostDraws / mine.size(), kLeastResamples, kMostResamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    std::vector<double> a, b;
    a.reserve(mine.size());
    b.reserve(mine.size());
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const std::size_t pick = random.below(mine.size());
      a.push_back(mine[pick]);
      b.push_back(others[pick]);
    }
    resampled.push_back(median_of(std::move(a)) / median_of(std::move(b)) - 1);
  }
  std::sort(resampled.begin(), resampled.end());
  const auto count = static_cast<double>(relative.size());
  double mean = 0, square = 0;
  for (const double d : relative) mean += d / count;
  for (const double d : relative) square += (d - mean) * (d - mean);
  const double half = calibration::student_t95(relative.size() - 1) * std::sqrt(square / (count - 1) / count);
  const double low = quantile(resampled, 0.025), high = quantile(resampled, 0.975);
  return {{"seeds", mine.size()},
          {"median", median_of(mine) / median_of(others) - 1},
          {"interval", {low, high}},
          {"beyond_noise", low > 0 || high < 0},
          {"mean", mean},
          {"mean_interval", {mean - half, mean + half}}};
}

}  // namespace

RunFacts facts_of(const OrderedJson& run) {
  RunFacts facts;
  RunGroup group;
  OrderedJson place = run.at("run");
  for (const char* key : {"platform", "allocation", "scheme"}) (void)place.at(key).as_string();
  group.policy = place.at("policy").get<std::string>();
  place.erase("policy");
  place.erase("gpus");  // the most GPUs at once depend on the policy, while the GPUs per node do not
  if (run.contains("launch")) place["gpus_per_node"] = gpus_per_node(run.at("launch").at("pools"));
  if (run.contains("quality")) place["quality"] = run.at("quality");  // the same for all seeds and policies
  group.place = place.dump();
  facts.group = std::make_shared<const RunGroup>(std::move(group));
  facts.seed = run.at("provenance").at("seed").get<std::uint64_t>();
  facts.time_s = run.at("time").at("total_s").get<double>();
  facts.usd = std::strtod(run.at("cost").at("total_usd").as_string().c_str(), nullptr);
  const OrderedJson& time = run.at("time").at("interval_s");
  facts.time_low_s = time.at(0).get<double>();
  facts.time_high_s = time.at(1).get<double>();
  const OrderedJson& usd = run.at("cost").at("interval_usd");
  facts.usd_low = std::strtod(usd.at(0).as_string().c_str(), nullptr);
  facts.usd_high = std::strtod(usd.at(1).as_string().c_str(), nullptr);
  facts.gpu_hours = run.at("gpu_hours").get<double>();
  if (!run.at("energy").is_null()) facts.kg_co2e = run.at("energy").at("kg_co2e").get<double>();
  facts.losses = run.at("life").at("losses").get<double>();
  facts.lost_training_s = run.at("life").at("lost_training_s").get<double>();
  facts.met = run.at("goals").at("met").get<bool>();
  return facts;
}

std::string facts_line(const RunFacts& facts) {
  std::string line = fmt::format("{}\t{}\t{}", facts.group->place, facts.group->policy, facts.seed);
  for (const auto number : kNumbers) fmt::format_to(std::back_inserter(line), "\t{}", facts.*number);
  return line + (facts.met ? "\t1" : "\t0");
}

RunFacts read_facts(std::string_view& text) {
  const auto cell = [&text] {
    const std::size_t tab = std::min(text.find('\t'), text.size());
    const std::string_view found = text.substr(0, tab);
    text.remove_prefix(std::min(tab + 1, text.size()));
    return found;
  };
  const auto read = [](std::string_view from, auto& value) {
    if (std::from_chars(from.data(), from.data() + from.size(), value).ec != std::errc{} || !std::isfinite(value))
      throw ConfigError(fmt::format("found \"{}\", expected a number", from));
  };
  RunFacts facts;
  RunGroup group;
  group.place = cell();
  group.policy = cell();
  facts.group = std::make_shared<const RunGroup>(std::move(group));
  read(cell(), facts.seed);
  for (const auto number : kNumbers) read(cell(), facts.*number);
  facts.met = cell() == "1";
  return facts;
}

Summary summarize(const std::vector<RunFacts>& all) {
  Summary summary;
  summary.groups = OrderedJson::array();
  summary.rankings = OrderedJson::array();
  // Places, and policies within them, in the order of their first run.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Runs>>>> places;
  std::map<std::string_view, std::size_t> place_of;
  std::map<RunGroup, std::pair<std::size_t, std::size_t>> known;  // indices into `places` and its policies
  for (const RunFacts& run : all) {
    const auto [group, is_new] = known.try_emplace(*run.group);
    if (is_new) {
      const auto [place, other] = place_of.try_emplace(group->first.place, places.size());
      if (other) places.push_back({run.group->place, {}});
      group->second = {place->second, places[place->second].second.size()};
      places[place->second].second.push_back({run.group->policy, {}});
      summary.firsts.push_back(static_cast<std::size_t>(&run - all.data()));
    }
    places[group->second.first].second[group->second.second].second.push_back(&run);
  }
  for (const auto& [place, policies] : places) {
    std::vector<double> medians[std::size(kMeasures)];
    for (const auto& [policy, runs] : policies) {
      summary.groups.push_back(group_json(runs));
      for (std::size_t m = 0; m < std::size(kMeasures); ++m)
        medians[m].push_back(summary.groups.back()[kMeasures[m].name]["median"].get<double>());
    }
    if (policies.size() < 2) continue;
    const OrderedJson facts = OrderedJson::parse(place);
    OrderedJson ranking = {
        {"platform", facts.at("platform")}, {"allocation", facts.at("allocation")}, {"scheme", facts.at("scheme")}};
    if (facts.contains("gpus_per_node")) ranking["gpus_per_node"] = facts.at("gpus_per_node");
    for (std::size_t m = 0; m < std::size(kMeasures); ++m) {
      std::vector<std::pair<double, std::size_t>> order;
      std::size_t base = policies.size();
      for (std::size_t i = 0; i < policies.size(); ++i) {
        order.emplace_back(medians[m][i], i);
        if (policies[i].first == "fixed") base = i;
      }
      std::sort(order.begin(), order.end());
      if (base == policies.size()) base = order.front().second;
      OrderedJson rows = OrderedJson::array();
      for (const auto& [median, i] : order)
        rows.push_back({{"policy", policies[i].first},
                        {"median", median},
                        {"against", policies[base].first},
                        {"difference", i == base ? OrderedJson(nullptr)
                                                 : compare(policies[i].second, policies[base].second, kMeasures[m])}});
      ranking[kMeasures[m].name] = std::move(rows);
    }
    summary.rankings.push_back(std::move(ranking));
  }
  return summary;
}

}  // namespace ganymede::studies
