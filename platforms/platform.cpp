#include "platforms/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {
namespace {

/// The end of an error message: the nearest name, or a list of at most a dozen names.
std::string hint(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kListed = 12;
  if (names.empty()) return "; it has none";
  if (const auto close = nearest(name, names)) return fmt::format("; did you mean \"{}\"?", *close);
  if (names.size() <= kListed) return fmt::format("; it has {}", fmt::join(names, ", "));
  auto first = names;
  first.resize(kListed);
  return fmt::format("; it has {} and {} more", fmt::join(first, ", "), names.size() - kListed);
}

[[noreturn]] void fail(const JsonNode* at, const std::string& message) {
  if (at != nullptr) at->fail(message);
  throw ConfigError(message);
}

/// Regions in which `instance` has a price, each once and in file order.
std::vector<std::string> priced_regions(const Instance& instance) {
  std::vector<std::string> regions;
  for (const Price& price : instance.prices)
    if (std::find(regions.begin(), regions.end(), price.region) == regions.end()) regions.push_back(price.region);
  return regions;
}

/// Each market once, whatever the zones of its prices.
std::set<std::string> priced_markets(const Instance& instance, std::string_view region) {
  std::set<std::string> markets;
  for (const Price& price : instance.prices)
    if (price.region == region) markets.emplace(to_string(price.market));
  return markets;
}

}  // namespace

std::string_view to_string(Market market) { return market_names()[static_cast<std::size_t>(market)]; }

const std::vector<std::string>& market_names() {
  static const std::vector<std::string> names{"on-demand", "spot", "reserved-1y", "reserved-3y"};
  return names;
}

std::optional<Market> parse_market(std::string_view name) {
  const auto& names = market_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Market>(found - names.begin());
}

Market read_market(const JsonNode& node) { return *parse_market(node.as_choice(market_names())); }

const Instance& Platform::instance(std::string_view wanted, const JsonNode* at) const {
  if (const Instance* found = find_named(instances, wanted)) return *found;
  fail(at, fmt::format("the catalog {} has no instance \"{}\"{}", name, wanted, hint(wanted, names_of(instances))));
}

const Storage& Platform::storage_class(std::string_view wanted, const JsonNode* at) const {
  if (const Storage* found = find_named(storage, wanted)) return *found;
  fail(at, fmt::format("the catalog {} has no storage \"{}\"{}", name, wanted, hint(wanted, names_of(storage))));
}

const Price& Platform::price(const Instance& instance, std::string_view region, Market market,
                             const JsonNode* region_at, const JsonNode* market_at, std::string_view zone) const {
  if (const Price* found = find_price(instance, region, market, zone)) return *found;
  const auto markets = priced_markets(instance, region);
  if (markets.empty())
    fail(region_at, fmt::format("the catalog {} has no price of {} in region \"{}\"{}", name, instance.name, region,
                                hint(region, priced_regions(instance))));
  fail(market_at, fmt::format("the catalog {} has no {} price of {} in {}; it has {}", name, to_string(market),
                              instance.name, region, fmt::join(markets, ", ")));
}

const Gpu& Platform::gpu_of(const Instance& instance) const {
  const Gpu* found = find_named(gpus, instance.gpu);
  assert(found != nullptr && "an instance of another platform");
  return *found;
}

const Region* Platform::region(std::string_view wanted) const { return find_named(regions, wanted); }

Delay Platform::boot(const Instance& instance) const {
  return instance.boot ? Delay{*instance.boot, provisioning.boot.spread} : provisioning.boot;
}

const Price* find_price(const Instance& instance, std::string_view region, Market market, std::string_view zone) {
  const Price* of_region = nullptr;
  for (const Price& price : instance.prices) {
    if (price.region != region || price.market != market) continue;
    if (price.zone == zone) return &price;
    if (price.zone.empty()) of_region = &price;
  }
  return of_region;
}

const StorageRates& Storage::rates_in(std::string_view region) const {
  for (const auto& [where, there] : regions)
    if (where == region) return there;
  return rates;
}

Bytes Storage::sold(Bytes wanted) const {
  if (object_store || wanted.si <= 0) return wanted;
  if (minimum) wanted = std::max(wanted, *minimum);
  const double unit = bytes_of(VolumeUnit::gib);
  return rates.unit == VolumeUnit::gib ? Bytes{std::ceil(wanted.si / unit) * unit} : wanted;
}

bool Storage::size_matters(std::string_view region) const {
  if (object_store) return false;
  const auto& price = rates_in(region).per_month;
  return (price && price->value > 0) || by_size.iops_per_gib > 0 || by_size.per_gib.si > 0 || limits.iops_per_gib;
}

void Storage::set_size(Bytes size) {
  const double gib = size.si / bytes_of(VolumeUnit::gib);
  if (by_size.iops_per_gib > 0) {
    const double reached = std::max(by_size.least_iops, by_size.iops_per_gib * gib);
    iops = iops ? std::min(*iops, reached) : reached;
    if (burst_iops && *burst_iops <= *iops) burst_iops.reset();
  }
  if (by_size.per_gib.si > 0) {
    const BytesPerSecond reached = std::max(by_size.least, by_size.per_gib * gib);
    read = std::min(read, reached);
    write = std::min(write, reached);
  }
}

MicroUsdPerHour Ownership::per_hour() const {
  const double hours = 8766 * utilization * overcommit;
  const double yearly =
      static_cast<double>(capital.value) / life_years + static_cast<double>((space_per_year + people_per_year).value);
  return {std::llround(yearly / hours + static_cast<double>(staff.value) / overcommit)};
}

std::string Ownership::terms() const {
  const auto yearly = [](const char* what, MicroUsd usd) {
    return usd.value > 0 ? fmt::format("{} {} USD a year, ", what, decimal(usd)) : "";
  };
  return fmt::format("{} USD over {:g} {} at {:g} % use, {}{}{}{}", decimal(capital), life_years,
                     life_years == 1 ? "year" : "years", 100 * utilization, yearly("space", space_per_year),
                     yearly("people", people_per_year),
                     staff.value > 0 ? fmt::format("staff {} USD/h", decimal(staff)) : "no staff",
                     overcommit > 1 ? fmt::format(", sold {:g} times over", overcommit) : "");
}

std::string owning_assumes(const Platform& platform, const Instance& instance, const Price& price) {
  if (!price.ownership) return "";
  const Seconds boot = platform.boot(instance).median;
  return price.ownership->terms() + (boot.si > 0 ? ", boot " + to_string(boot) : ", no boot");
}

std::string Platform::fabric_label(const Instance& instance, int nodes, int gpus_per_node) const {
  std::vector<std::string> labels;
  if (gpus_per_node > 1) {
    if (instance.gpu_links) labels.push_back(instance.gpu_links->label);
    if (instance.host_link && (!instance.gpu_links || instance.gpu_links->with_host_link))
      labels.push_back(instance.host_link->label);
  }
  if (nodes > 1) {
    labels.push_back(fabric.label);
    if (instance.nic && !fabric.joins_gpus()) labels.push_back(instance.nic->label);
  }
  if (labels.empty()) return "not used";
  for (const char* label : {"assumed", "datasheet"})
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) return label;
  return "measured";
}

}  // namespace ganymede::platforms
