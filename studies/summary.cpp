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

using Json = nlohmann::ordered_json;

struct Measure {
  const char* name;
  double (*of)(const Json& run);
};

constexpr Measure kMeasures[] = {
    {"time_s", [](const Json& run) { return run["time"]["total_s"].get<double>(); }},
    {"usd",
     [](const Json& run) {
       return std::strtod(run["cost"]["total_usd"].get_ref<const std::string&>().c_str(), nullptr);
     }},
    {"gpu_hours", [](const Json& run) { return run["gpu_hours"].get<double>(); }},
    {"kg_co2e", [](const Json& run) { return run["energy"].is_null() ? 0 : run["energy"]["kg_co2e"].get<double>(); }},
};

/// Of sorted values, interpolated between neighbours.
double quantile(const std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

std::string place_of(const Json& run) {
  const Json& r = run["run"];
  std::string key;
  for (const char* part : {"platform", "market", "allocation", "gpu", "scheme", "mode", "placement"})
    key += r[part].get<std::string>() + "|";
  return key;
}

using Runs = std::vector<const Json*>;

Json group_json(const Runs& runs) {
  Json group = (*runs.front())["run"];
  group["runs"] = runs.size();
  for (const Measure& measure : kMeasures) {
    std::vector<double> values;
    for (const Json* run : runs) values.push_back(measure.of(*run));
    std::sort(values.begin(), values.end());
    group[measure.name] = {
        {"median", quantile(values, 0.5)}, {"p5", quantile(values, 0.05)}, {"p95", quantile(values, 0.95)}};
  }
  double losses = 0, met = 0, lost = 0;
  for (const Json* run : runs) {
    losses += (*run)["life"]["losses"].get<double>();
    lost += (*run)["life"]["lost_training_s"].get<double>();
    met += (*run)["goals"]["met"].get<bool>() ? 1 : 0;
  }
  const auto count = static_cast<double>(runs.size());
  group["losses_mean"] = losses / count;
  group["lost_training_s_mean"] = lost / count;
  group["met_share"] = met / count;
  return group;
}

/// Relative differences of `runs` to `base` on common seeds.
Json compare(const Runs& runs, const Runs& base, const Measure& measure) {
  std::map<std::uint64_t, double> of_base;
  for (const Json* run : base) of_base[(*run)["provenance"]["seed"].get<std::uint64_t>()] = measure.of(*run);
  std::vector<double> differences;
  for (const Json* run : runs) {
    const auto other = of_base.find((*run)["provenance"]["seed"].get<std::uint64_t>());
    if (other != of_base.end() && other->second > 0) differences.push_back(measure.of(*run) / other->second - 1);
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

void summarize(Json& sweep) {
  // In the order in which they came.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Runs>>>> places;
  for (const Json& run : sweep["runs"]) {
    const std::string place = place_of(run);
    const std::string policy = run["run"]["policy"].get<std::string>();
    auto at = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == place; });
    if (at == places.end()) at = places.insert(places.end(), {place, {}});
    auto of = std::find_if(at->second.begin(), at->second.end(), [&](const auto& p) { return p.first == policy; });
    if (of == at->second.end()) of = at->second.insert(at->second.end(), {policy, {}});
    of->second.push_back(&run);
  }
  Json groups = Json::array();
  Json rankings = Json::array();
  for (const auto& [place, policies] : places) {
    for (const auto& [policy, runs] : policies) groups.push_back(group_json(runs));
    if (policies.size() < 2) continue;
    Json ranking = {{"platform", (*policies.front().second.front())["run"]["platform"]},
                    {"allocation", (*policies.front().second.front())["run"]["allocation"]},
                    {"scheme", (*policies.front().second.front())["run"]["scheme"]}};
    for (const Measure& measure : kMeasures) {
      std::vector<std::pair<double, std::size_t>> order;
      std::size_t base = 0;
      for (std::size_t i = 0; i < policies.size(); ++i) {
        order.emplace_back(group_json(policies[i].second)[measure.name]["median"].get<double>(), i);
        if (policies[i].first == "fixed") base = i;
      }
      std::sort(order.begin(), order.end());
      if (policies[base].first != "fixed") base = order.front().second;
      Json rows = Json::array();
      for (const auto& [median, i] : order)
        rows.push_back(
            {{"policy", policies[i].first},
             {"median", median},
             {"against", policies[base].first},
             {"difference", i == base ? Json(nullptr) : compare(policies[i].second, policies[base].second, measure)}});
      ranking[measure.name] = std::move(rows);
    }
    rankings.push_back(std::move(ranking));
  }
  sweep["groups"] = std::move(groups);
  sweep["rankings"] = std::move(rankings);
}

}  // namespace ganymede
