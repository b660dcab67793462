#include "platforms/catalog_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_list.hpp"

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

namespace {

std::map<std::string, double> exchange_rates(const std::vector<std::string>& given) {
  std::map<std::string, double> rates;
  for (const std::string& text : given) {
    const std::size_t sign = text.find('=');
    char* end = nullptr;
    const double rate = sign == std::string::npos ? 0 : std::strtod(text.c_str() + sign + 1, &end);
    if (sign == std::string::npos || sign == 0 || end == nullptr || *end != '\0' || !(rate > 0 && rate < 1e6))
      throw ConfigError(
          fmt::format("--exchange {}: expected what one unit is worth in dollars, such as EUR=1.08", text));
    rates[text.substr(0, sign)] = rate;
  }
  return rates;
}

/// The day on which the oldest of the files was written, at the latest today.
std::string day_of(const std::vector<std::string>& files, std::string today) {
  for (const std::string& file : files)
    if (const auto day = day_written(file)) today = std::min(today, *day);
  return today;
}

/// Remarks on lines: their title, how many there are, and the first ones.
void remark_some(const std::string& title, const std::vector<std::string>& lines, std::vector<std::string>& remarks) {
  constexpr std::size_t kShown = 5;
  if (lines.empty()) return;
  const std::size_t shown = std::min(lines.size(), kShown);
  std::string text = fmt::format("{}: {}", title, lines.size());
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + lines[i];
  if (shown < lines.size()) text += fmt::format("\n  and {} more", lines.size() - shown);
  remarks.push_back(text);
}

/// Remarks on what a user should know about a list that was merged. `read_on` is the day that its file tells, if that
/// is the date of prices.
void remark_on(const PriceList& list, const Merged& merged, const std::string& read_on,
               std::vector<std::string>& remarks) {
  remark_some("prices that changed by more than half (look at them before a plan rests on them)", merged.jumps,
              remarks);
  remark_some("passed over, because they are prices of hosts without their GPUs", list.parts, remarks);
  std::vector<std::string> lines;
  std::map<std::array<std::string, 2>, MicroUsdPerHour> on_demand;
  for (const ListedPrice& one : list.prices)
    if (one.price.market == Market::on_demand) on_demand[{one.instance, one.price.region}] = one.price.per_hour;
  for (const ListedPrice& one : list.prices) {
    const auto other = on_demand.find({one.instance, one.price.region});
    if (one.price.market == Market::spot && other != on_demand.end() && one.price.per_hour > other->second)
      lines.push_back(fmt::format("{}: {} in {}: {} USD/h on spot, {} on demand", one.where, one.instance,
                                  one.price.zone.empty() ? one.price.region : one.price.zone,
                                  decimal(one.price.per_hour), decimal(other->second)));
  }
  remark_some("prices of spot above those on demand, taken as they stand", lines, remarks);
  lines.clear();
  for (const auto& [name, facts] : list.fresh)
    lines.push_back(fmt::format("{}: {} x {}, {}", name, facts.gpus, facts.gpu,
                                counted(static_cast<std::size_t>(facts.vcpus), "vCPU")));
  remark_some("new instances, with the links of others and without a NIC", lines, remarks);
  lines.clear();
  for (const auto& [gpu, line] : list.no_sheet) lines.push_back(line);
  remark_some("passed over, because the catalog has no data sheet of their GPU", lines, remarks);
  if (list.undated && !read_on.empty())
    remarks.push_back(
        fmt::format("the list does not say its date: its prices are of {}, when its file was written; say with "
                    "--as-of on which day it was read",
                    read_on));
  if (list.unknown.empty()) return;
  std::string first;
  for (const auto& [instance, rows] : list.unknown) {
    if (first.size() > 60) break;
    if (!instance.empty()) first += (first.empty() ? "" : ", ") + instance;
  }
  remarks.push_back(fmt::format("passed over: {} that the catalog does not have, such as {}",
                                counted(list.unknown.size(), "instance"), first));
}

}  // namespace

UpdatedCatalog update_catalog(const CatalogUpdate& update) {
  const std::string& name = update.catalog;
  const std::string text = is_provider(name) ? std::string(catalog_text(name)) : read_file(name);
  const Platform platform = load_catalog(name, ".");
  const std::string read_on = update.as_of.empty() ? day_of(update.list, update.today) : "";
  const PriceList list = read_price_list({update.list.begin(), update.list.end()}, platform,
                                         {.today = update.today,
                                          .as_of = update.as_of.empty() ? read_on : update.as_of,
                                          .exchange = exchange_rates(update.exchange),
                                          .region = update.region});
  const Merged merged = merge_prices(text, list);
  read_platform(JsonNode::parse(merged.text, "the merged catalog"));
  UpdatedCatalog out{merged.text, {}};
  out.remarks.push_back(fmt::format("{}: {}: {} of {}: {} changed, {} new, {} as before", fmt::join(update.list, ", "),
                                    list.kind, counted(list.prices.size(), "price"), platform.name, merged.changed,
                                    merged.added, merged.same));
  remark_on(list, merged, read_on, out.remarks);
  return out;
}

}  // namespace ganymede::platforms
