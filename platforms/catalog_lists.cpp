#include "platforms/catalog_lists.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::platforms {
namespace {

/// "35 instances in 5 regions, prices of 2025-04-04 to 2026-07-20".
std::string summary_of(const Platform& platform) {
  std::set<std::string> regions;
  std::set<std::string> dates;
  for (const Instance& instance : platform.instances) {
    for (const Price& price : instance.prices) {
      regions.insert(price.region);
      if (price.as_of != "undated") dates.insert(price.as_of);
    }
  }
  std::string known = fmt::format("{} in {}", counted(platform.instances.size(), "instance type"),  //
                                  counted(regions.size(), "region"));
  if (dates.empty()) return known;
  if (dates.size() == 1) return fmt::format("{}, prices of {}", known, *dates.begin());
  return fmt::format("{}, prices of {} to {}", known, *dates.begin(), *dates.rbegin());
}

}  // namespace

std::vector<ListedName> list_providers() {
  std::vector<ListedName> rows;
  for (const std::string& provider : provider_names()) rows.push_back({provider, summary_of(catalog(provider))});
  return rows;
}

std::vector<ListedName> list_markets() {
  const auto summary = [](Market market) -> const char* {
    switch (market) {
      case Market::on_demand:
        return "paid while it runs, never taken back";
      case Market::spot:
        return "cheaper, may be taken back at short notice";
      case Market::reserved_1y:
        return "committed for one year";
      case Market::reserved_3y:
        return "committed for three years";
    }
    return "";
  };
  std::vector<ListedName> rows;
  for (const std::string& name : market_names()) rows.push_back({name, summary(*parse_market(name))});
  return rows;
}

void for_each_instance(const std::function<void(const Platform&, const Instance&)>& visit) {
  for (const std::string& provider : provider_names())
    for (const Instance& instance : catalog(provider).instances)
      if (instance.retired.empty()) visit(catalog(provider), instance);
}

std::vector<ListedName> list_instances() {
  std::vector<ListedName> rows;
  for_each_instance([&](const Platform& platform, const Instance& instance) {
    std::string summary = fmt::format("{}: {} x {}", platform.name, instance.gpus, instance.gpu);
    if (instance.vcpus > 0) summary += fmt::format(", {} vCPUs", instance.vcpus);
    const Price* least = nullptr;
    std::set<std::string> regions;
    for (const Price& price : instance.prices) {
      regions.insert(price.region);
      if (price.market == Market::on_demand && (least == nullptr || price.per_hour < least->per_hour)) least = &price;
    }
    if (regions.empty()) summary += "; no price is known";
    if (!regions.empty()) summary += "; " + counted(regions.size(), "region");
    if (least != nullptr) summary += ", on demand from " + to_string(least->per_hour);
    rows.push_back({instance.name, std::move(summary)});
  });
  return rows;
}

std::vector<ListedName> list_regions() {
  std::vector<ListedName> rows;
  for (const std::string& provider : provider_names()) {
    const Platform& platform = catalog(provider);
    std::map<std::string, std::size_t> types;
    for (const Instance& instance : platform.instances) {
      std::set<std::string> priced;
      for (const Price& price : instance.prices) priced.insert(price.region);
      for (const std::string& region : priced) ++types[region];
    }
    for (const auto& [name, count] : types) {
      std::string summary = fmt::format("{}: {}", provider, counted(count, "instance type"));
      if (const Region* region = platform.region(name); region != nullptr && region->carbon)
        summary += ", " + to_string(*region->carbon);
      rows.push_back({name, std::move(summary)});
    }
  }
  return rows;
}

}  // namespace ganymede::platforms
