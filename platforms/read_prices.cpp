// Reads prices of instances, storage, transfer and services, and the billing rules.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "common/dates.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/money.hpp"
#include "platforms/platform_readers.hpp"

namespace ganymede::platforms {
namespace {

constexpr double kMaxIops = 1e9;

Ownership read_ownership(const JsonNode& node) {
  JsonObject in(node);
  Ownership ownership;
  ownership.capital = read_amount(in.required("capital"), "", "140000USD");
  ownership.life_years = in.required("life_years").as_number(1e-3, 1000);
  if (const auto share = in.optional("utilization")) ownership.utilization = share->as_number(1e-3, 1);
  if (const auto times = in.optional("overcommit")) ownership.overcommit = times->as_number(1, 1000);
  if (const auto staff = in.optional("staff")) ownership.staff = staff->as_quantity<MicroUsdPerHour>();
  if (const auto space = in.optional("space_per_year"))
    ownership.space_per_year = read_amount(*space, "year", "3000USD");
  if (const auto people = in.optional("people_per_year"))
    ownership.people_per_year = read_amount(*people, "year", "3000USD");
  if (const auto on = in.optional("always_on")) ownership.always_on = on->as_bool();
  in.finish();
  return ownership;
}

Price read_price(const JsonNode& node) {
  JsonObject in(node);
  Price price;
  price.region = in.required("region").as_string();
  if (const auto zone = in.optional("zone")) price.zone = zone->as_string();
  price.market = read_market(in.required("market"));
  const JsonNode amount = in.one_of("per_hour", "ownership");
  if (amount.is_object()) {
    price.ownership = read_ownership(amount);
    price.per_hour = price.ownership->per_hour();
  } else {
    price.per_hour = amount.as_quantity<MicroUsdPerHour>();
  }
  const JsonNode as_of = in.required("as_of");
  price.as_of = as_of.as_string();
  if (price.as_of != "undated" && !is_date(price.as_of)) as_of.expected("a date as YYYY-MM-DD, or \"undated\"");
  if (const auto share = in.optional("interrupted_per_month")) price.interrupted_per_month = share->as_number(0, 0.999);
  if (const auto spread = in.optional("spread")) {
    JsonObject ends(*spread);
    price.spread = {ends.required("low").as_quantity<MicroUsdPerHour>(),
                    ends.required("high").as_quantity<MicroUsdPerHour>()};
    ends.finish();
    if (price.spread->first > price.per_hour || price.spread->second < price.per_hour)
      spread->expected("a low and a high price, with per_hour between them");
  }
  price.origin = read_origin(in);
  in.finish();
  return price;
}

std::optional<MicroUsd> optional_money(JsonObject& in, std::string_view key) {
  const auto node = in.optional(key);
  return node ? std::optional<MicroUsd>(read_money(*node)) : std::nullopt;
}

std::optional<MicroUsdPerHour> optional_rate(JsonObject& in, std::string_view key) {
  const auto node = in.optional(key);
  return node ? std::optional<MicroUsdPerHour>(node->as_quantity<MicroUsdPerHour>()) : std::nullopt;
}

/// Reads a price that is stated for a decimal or a binary unit, and returns it with its unit; nothing if neither key is
/// there.
std::optional<std::pair<MicroUsd, VolumeUnit>> money_for(JsonObject& in, std::string_view decimal_key,
                                                         std::string_view binary_key) {
  const auto decimal = in.optional(decimal_key), binary = in.optional(binary_key);
  if (decimal && binary) binary->fail(fmt::format("stands beside \"{}\"; keep one of the two", decimal_key));
  if (decimal) return {{read_money(*decimal), VolumeUnit::gb}};
  if (binary) return {{read_money(*binary), VolumeUnit::gib}};
  return std::nullopt;
}

/// Returns `rates` with those rates replaced that the file states.
StorageRates read_rates(JsonObject& in, StorageRates rates) {
  if (const auto price = money_for(in, "per_gb_month", "per_gib_month")) {
    rates.per_month = price->first;
    rates.unit = price->second;
  }
  if (const auto money = optional_money(in, "per_iops_month")) rates.per_iops_month = money;
  if (const auto price = money_for(in, "per_mbps_month", "per_mibps_month")) {
    rates.per_rate_month = price->first;
    rates.rate_in_mib = price->second == VolumeUnit::gib;
  }
  if (const auto money = optional_money(in, "per_1000_put")) rates.per_1000_put = money;
  if (const auto money = optional_money(in, "per_1000_get")) rates.per_1000_get = money;
  return rates;
}

/// Reads tiers, which are all by the GB or all by the GiB; sets `unit` accordingly.
std::vector<PriceTier> read_tiers(const JsonNode& node, VolumeUnit& unit) {
  std::vector<PriceTier> tiers;
  for (const JsonNode& row : node.as_array()) {
    JsonObject in(row);
    const auto start_of_row = tiers.empty() ? std::optional<double>(0) : tiers.back().up_to;
    if (!start_of_row) row.fail("stands behind a tier without an \"up_to_gb\" or \"up_to_gib\", which has no end");
    if (tiers.empty() && row.is_object() && row.value().contains("per_gib")) unit = VolumeUnit::gib;
    const bool binary = unit == VolumeUnit::gib;
    PriceTier tier;
    const auto end = in.optional(binary ? "up_to_gib" : "up_to_gb");
    if (end) tier.up_to = end->as_number(0, 1e15);
    if (end && *tier.up_to <= *start_of_row)
      end->expected(fmt::format("more than {:g}, where the tier before ends", *start_of_row));
    tier.price = read_money(in.required(binary ? "per_gib" : "per_gb"));
    in.finish();
    tiers.push_back(tier);
  }
  if (tiers.empty()) node.expected("at least one tier");
  if (tiers.back().up_to) node.fail("the last tier has an end; leave out its \"up_to_gb\" or \"up_to_gib\"");
  return tiers;
}

SpeedBySize read_speed_by_size(const JsonNode& node) {
  JsonObject in(node);
  SpeedBySize speed;
  if (const auto iops = in.optional("iops_per_gib")) speed.iops_per_gib = iops->as_number(1e-6, kMaxIops);
  if (const auto least = in.optional("least_iops")) speed.least_iops = least->as_number(0, kMaxIops);
  if (const auto rate = in.optional("throughput_per_gib")) speed.per_gib = rate->as_positive<BytesPerSecond>();
  if (const auto least = in.optional("least_throughput")) speed.least = least->as_positive<BytesPerSecond>();
  in.finish();
  return speed;
}

VolumeLimits read_volume_limits(const JsonNode& node) {
  JsonObject in(node);
  VolumeLimits limits;
  if (const auto iops = in.optional("iops")) limits.iops = iops->as_number(1, kMaxIops);
  if (const auto iops = in.optional("iops_per_gib")) limits.iops_per_gib = iops->as_number(1e-6, kMaxIops);
  if (const auto rate = in.optional("throughput")) limits.throughput = rate->as_positive<BytesPerSecond>();
  if (const auto rate = in.optional("throughput_per_iops")) limits.per_iops = rate->as_positive<BytesPerSecond>();
  in.finish();
  return limits;
}

}  // namespace

MicroUsd read_money(const JsonNode& node) { return read_amount(node, "", "0.08USD"); }

namespace {

/// Converts amounts such as "2EUR" and "2EUR/h" to dollars; returns any other text unchanged.
std::string converted(const std::string& text, const std::string& code, double usd) {
  const bool rate = text.ends_with("/h");
  const std::string_view amount = std::string_view(text).substr(0, text.size() - (rate ? 2 : 0));
  if (!amount.ends_with(code)) return text;
  const std::string_view digits = amount.substr(0, amount.size() - code.size());
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !(value >= 0 && value < 1e12)) return text;
  return decimal(MicroUsd{std::llround(value * usd * 1e6)}) + "USD" + (rate ? "/h" : "");
}

void convert(Json& value, const std::string& code, double usd) {
  if (value.is_string()) value = converted(value.get<std::string>(), code, usd);
  if (value.is_structured())
    for (auto& member : value) convert(member, code, usd);
}

}  // namespace

JsonNode in_dollars(const JsonNode& root, std::string& note) {
  if (!root.is_object() || !root.value().contains("currency")) return root;
  JsonObject in(root.child("currency"));
  const JsonNode code = in.required("code");
  const std::string name = code.as_string();
  if (name.size() != 3 || name == "USD") code.expected("three letters of another currency than USD, such as \"EUR\"");
  const double usd = in.required("usd").as_number(1e-6, 1e6);
  const JsonNode as_of = in.required("as_of");
  if (!is_date(as_of.as_string())) as_of.expected("a date as YYYY-MM-DD");
  read_origin(in);
  in.finish();
  Json content = root.value();
  convert(content, name, usd);
  note = fmt::format("{} at {:g} USD of {}", name, usd, as_of.as_string());
  return JsonNode::wrap(std::move(content), root.file(), root.directory());
}

std::vector<Price> read_prices(const JsonNode& node) {
  std::vector<Price> prices;
  std::set<std::tuple<std::string, std::string, Market>> seen;
  for (const JsonNode& row : node.as_array()) {
    const Price& price = prices.emplace_back(read_price(row));
    if (!seen.emplace(price.region, price.zone, price.market).second)
      row.fail(fmt::format("a second {} price in {} \"{}\"; keep one", to_string(price.market),
                           price.zone.empty() ? "region" : "zone", price.zone.empty() ? price.region : price.zone));
  }
  return prices;
}

Storage read_storage(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  Storage storage;
  storage.name = name;
  if (const auto kind = in.optional("kind")) storage.object_store = kind->as_choice({"volume", "object"}) == "object";
  storage.read = in.required("read").as_positive<BytesPerSecond>();
  storage.write = in.required("write").as_positive<BytesPerSecond>();
  if (const auto iops = in.optional("iops")) storage.iops = iops->as_number(1, kMaxIops);
  if (const auto all = in.optional("provisioned")) storage.provisioned = all->as_bool();
  storage.latency = seconds_or(in, "latency", Seconds{0});
  if (const auto burst = in.optional("burst_iops")) storage.burst_iops = burst->as_number(1, kMaxIops);
  if (const auto credits = in.optional("burst_credits")) storage.burst_credits = credits->as_number(0, 1e15);
  storage.minimum = optional_positive<Bytes>(in, "minimum");
  storage.maximum = optional_positive<Bytes>(in, "maximum");
  const auto each = in.optional("each_node");
  storage.each_node = each ? each->as_bool() : storage.object_store;
  if (const auto speed = in.optional("by_size")) storage.by_size = read_speed_by_size(*speed);
  if (const auto limits = in.optional("limits")) storage.limits = read_volume_limits(*limits);
  storage.rates = read_rates(in, {});
  if (const auto regions = in.optional("regions"))
    for (const auto& [region, member] : regions->as_map()) {
      JsonObject there(member);
      storage.regions.emplace_back(region, read_rates(there, storage.rates));
      there.finish();
    }
  storage.origin = read_origin(in);
  in.finish();
  return storage;
}

Billing read_billing(const JsonNode& node) {
  JsonObject in(node);
  Billing billing;
  if (const auto granularity = in.optional("granularity")) billing.granularity = granularity->as_positive<Seconds>();
  billing.minimum = seconds_or(in, "minimum", billing.minimum);
  if (const auto starts = in.optional("starts")) {
    const std::string at = starts->as_choice({"request", "boot", "ready"});
    billing.start = at == "request" ? Billing::Start::request
                    : at == "boot"  ? Billing::Start::boot
                                    : Billing::Start::ready;
  }
  billing.free_if_interrupted = seconds_or(in, "free_if_interrupted_within", Seconds{0});
  billing.origin = read_origin(in);
  in.finish();
  return billing;
}

EgressPrices read_transfer(const JsonNode& node) {
  JsonObject in(node);
  EgressPrices transfer;
  transfer.zone = optional_money(in, "zone");
  if (const auto ends = in.optional("zone_charged"))
    transfer.zone_charged_at_both_ends = ends->as_choice({"both ends", "once"}) == "both ends";
  transfer.region = optional_money(in, "region");
  if (const auto tiers = in.optional("internet")) transfer.internet = read_tiers(*tiers, transfer.internet_unit);
  if (const auto free = in.optional("free_gb_month")) transfer.free_gb_month = free->as_number(0, 1e12);
  transfer.origin = read_origin(in);
  in.finish();
  return transfer;
}

Services read_services(const JsonNode& node) {
  JsonObject in(node);
  Services services;
  services.control_plane = optional_rate(in, "control_plane");
  services.control_plane_free = seconds_or(in, "control_plane_free", Seconds{0});
  services.load_balancer = optional_rate(in, "load_balancer");
  services.origin = read_origin(in);
  in.finish();
  return services;
}

}  // namespace ganymede::platforms
