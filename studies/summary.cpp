#include "studies/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/statistics.hpp"

namespace ganymede {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Measure {
  const char* name;
  double RunFacts::*value;
};

constexpr Measure kMeasures[] = {{"time_s", &RunFacts::time_s},
                                 {"usd", &RunFacts::usd},
                                 {"gpu_hours", &RunFacts::gpu_hours},
                                 {"kg_co2e", &RunFacts::kg_co2e}};

using Runs = std::vector<const RunFacts*>;

OrderedJson group_json(const Runs& runs) {
  OrderedJson group = OrderedJson::parse(runs.front()->place);
  group["policy"] = runs.front()->policy;
  group["runs"] = runs.size();
  for (const Measure& measure : kMeasures) {
    std::vector<double> values;
    for (const RunFacts* run : runs) values.push_back(run->*measure.value);
    std::sort(values.begin(), values.end());
    group[measure.name] = {
        {"median", quantile(values, 0.5)}, {"p5", quantile(values, 0.05)}, {"p95", quantile(values, 0.95)}};
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

/// Relative differences of `runs` to `base` on common seeds.
OrderedJson compare(const Runs& runs, const Runs& base, const Measure& measure) {
  std::map<std::uint64_t, double> of_base;
  for (const RunFacts* run : base) of_base[run->seed] = run->*measure.value;
  std::vector<double> differences;
  for (const RunFacts* run : runs) {
    const auto other = of_base.find(run->seed);
    if (other != of_base.end() && other->second > 0) differences.push_back(run->*measure.value / other->second - 1);
  }
  if (differences.size() < 2) return nullptr;
  const auto count = static_cast<double>(differences.size());
  double mean = 0, square = 0;
  for (const double d : differences) mean += d / count;
  for (const double d : differences) square += (d - mean) * (d - mean);
  const double half = student_t95(differences.size() - 1) * std::sqrt(square / (count - 1) / count);
  return {{"seeds", differences.size()},
          {"mean", mean},
          {"interval", {mean - half, mean + half}},
          {"beyond_noise", mean - half > 0 || mean + half < 0}};
}

}  // namespace

RunFacts facts_of(const OrderedJson& run) {
  RunFacts facts;
  OrderedJson place = run.at("run");
  for (const char* key : {"platform", "allocation", "scheme"}) (void)place.at(key).get_ref<const std::string&>();
  facts.policy = place.at("policy").get<std::string>();
  place.erase("policy");
  place.erase("gpus");  // at most at once: that depends on the policy
  facts.place = place.dump();
  facts.seed = run.at("provenance").at("seed").get<std::uint64_t>();
  facts.time_s = run.at("time").at("total_s").get<double>();
  facts.usd = std::strtod(run.at("cost").at("total_usd").get_ref<const std::string&>().c_str(), nullptr);
  facts.gpu_hours = run.at("gpu_hours").get<double>();
  if (!run.at("energy").is_null()) facts.kg_co2e = run.at("energy").at("kg_co2e").get<double>();
  facts.losses = run.at("life").at("losses").get<double>();
  facts.lost_training_s = run.at("life").at("lost_training_s").get<double>();
  facts.met = run.at("goals").at("met").get<bool>();
  return facts;
}

Summary summarize(const std::vector<RunFacts>& all) {
  Summary summary;
  summary.groups = OrderedJson::array();
  summary.rankings = OrderedJson::array();
  // In the order in which they came.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Runs>>>> places;
  for (const RunFacts& run : all) {
    auto at = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == run.place; });
    if (at == places.end()) at = places.insert(places.end(), {run.place, {}});
    auto of = std::find_if(at->second.begin(), at->second.end(), [&](const auto& p) { return p.first == run.policy; });
    if (of == at->second.end()) {
      of = at->second.insert(at->second.end(), {run.policy, {}});
      summary.firsts.push_back(static_cast<std::size_t>(&run - all.data()));
    }
    of->second.push_back(&run);
  }
  for (const auto& [place, policies] : places) {
    std::vector<double> medians[std::size(kMeasures)];
    for (const auto& [policy, runs] : policies) {
      summary.groups.push_back(group_json(runs));
      for (std::size_t m = 0; m < std::size(kMeasures); ++m)
        medians[m].push_back(summary.groups.back()[kMeasures[m].name]["median"].get<double>());
    }
    if (policies.size() < 2) continue;
    const OrderedJson of = OrderedJson::parse(place);
    OrderedJson ranking = {
        {"platform", of.at("platform")}, {"allocation", of.at("allocation")}, {"scheme", of.at("scheme")}};
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

}  // namespace ganymede
