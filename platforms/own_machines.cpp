#include "platforms/own_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::platforms {
namespace {

using Ordered = OrderedJson;

constexpr double kHoursOfYear = 8766;

/// The lowest price on demand for a year, in thousands of dollars rounded up; none without such a price.
std::optional<double> year_on_demand(const Instance& instance) {
  std::optional<double> lowest;
  for (const Price& price : instance.prices)
    if (price.market == Market::on_demand)
      lowest = std::min(lowest.value_or(1e300), static_cast<double>(price.per_hour.value) * 1e-6);
  if (!lowest) return std::nullopt;
  return std::ceil(*lowest * kHoursOfYear / 1000);
}

std::string file_of(const std::string& provider, const Platform& platform, const Instance& instance) {
  const auto catalog = Ordered::parse(catalog_text(provider), /*comments=*/true);
  Ordered file = {{"schema", "ganymede.platform/1"}, {"provider", "private"}, {"name", "own"}};
  file["gpus"][instance.gpu] = catalog.at("gpus").at(instance.gpu);
  Ordered& like = file["instances"][instance.name] = catalog.at("instances").at(instance.name);
  const std::optional<double> year = year_on_demand(instance);
  const Ordered ownership = {{"capital", fmt::format("{:.0f}USD", 1000 * year.value_or(1))},
                             {"life_years", 4},
                             {"space_per_year", "0USD"},
                             {"people_per_year", "0USD"},
                             {"utilization", 0.6},
                             {"always_on", true}};
  like["prices"] = Ordered::array({{{"region", "room-1"},
                                    {"market", "on-demand"},
                                    {"ownership", ownership},
                                    {"as_of", "2026-11-01"},
                                    {"source", "placeholder: state your quote"}}});
  for (const char* key : {"retired", "available"}) like.erase(key);
  file["regions"]["room-1"] = {{"carbon", "400g/kWh"}, {"pue", 1.5}, {"per_kwh", "0.15USD"}};
  file["fabric"] = catalog.at("fabric");
  file["storage"]["nfs"] = {{"read", "2GB/s"}, {"write", "1GB/s"}, {"iops", 30000}, {"per_gb_month", "0USD"}};
  file["provisioning"]["boot"] = "60s";
  file["billing"] = {{"granularity", "1s"}, {"minimum", "0s"}};
  const std::string head = fmt::format(
      "// Machines of your own that are built like {} of {}. State what they cost: \"capital\" is a placeholder{},\n"
      "// and life, space, people, electricity, PUE and carbon are examples.\n",
      instance.name, platform.name,
      year ? fmt::format(", a year of {} on demand", instance.name) : ", no price on demand is known");
  return head + file.dump(2) + "\n";
}

}  // namespace

std::string machines_like(const std::string& name) {
  std::vector<std::string> names;
  for (const std::string& provider : provider_names()) {
    const Platform& platform = catalog(provider);
    for (const Instance& instance : platform.instances) {
      if (instance.name == name) return file_of(provider, platform, instance);
      names.push_back(instance.name);
    }
  }
  throw ConfigError(fmt::format("--like: no catalog has the instance type \"{}\"{}; `ganymede list instances`", name,
                                did_you_mean(name, names)));
}

}  // namespace ganymede::platforms
