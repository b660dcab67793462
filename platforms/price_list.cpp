#include "platforms/price_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/check.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {

namespace {

void read_table(const CsvTable& table, PriceCollector& out) {
  for (const CsvTable::Row& row : table.rows()) {
    const auto price = price_cell(table, row, "usd_per_hour");
    if (!price) continue;  // "no price"
    const auto market = parse_market(table.at(row, "market"));
    if (!market)
      table.fail(row, "market",
                 fmt::format("found \"{}\", expected {}", table.at(row, "market"), list_of(market_names())));
    out.add(table.at(row, "instance"), fmt::format("{}: line {}", table.file(), row.line), table.at(row, "region"),
            table.has("zone") ? table.at(row, "zone") : "", *market, *price, table.at(row, "as_of"));
  }
}

/// Returns the kind of the list.
std::string read_csv(const CsvTable& table, PriceCollector& out) {
  const auto all = [&](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return table.has(name); });
  };
  if (all({"InstanceType", "Price", "SpotPrice", "Region"})) {
    read_sky_list(table, out);
    return "SkyPilot catalog";
  }
  if (all({"instance", "region", "market", "usd_per_hour", "as_of"})) {
    read_table(table, out);
    return "price table";
  }
  throw ConfigError(
      fmt::format("{}: line 1: expected the columns instance, region, market, usd_per_hour and as_of, or those of "
                  "SkyPilot's vms.csv: InstanceType, Price, SpotPrice and Region",
                  table.file()));
}

/// The file's first characters, without a byte order mark and white space.
std::string head_of(const std::filesystem::path& file) {
  std::string head(4096, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  head.erase(0, std::min(head.size(), head.find_first_not_of(" \t\r\n\xEF\xBB\xBF")));
  return head;
}

/// Returns the kind of the list. JSON and AWS's table may be larger than the memory.
std::string read_one(const std::filesystem::path& file, PriceCollector& out) {
  const std::string head = head_of(file);
  if (head.starts_with('{') || head.starts_with('[') || (head.starts_with('/') && file.extension() == ".json"))
    return read_json_prices(file, out);
  const std::string_view unquoted = std::string_view(head).substr(head.starts_with('"') ? 1 : 0);
  if (unquoted.starts_with("FormatVersion") || unquoted.starts_with("SKU")) {
    read_aws_csv(file, out);
    return "AWS price list";
  }
  return read_csv(CsvTable::load(file), out);
}

}  // namespace

PriceList read_price_list(const std::vector<std::filesystem::path>& files, const Platform& platform,
                          const PriceListOptions& options) {
  PriceCollector out(platform, options);
  std::string kind;
  for (const std::filesystem::path& file : files) {
    out.begin_file(file.filename().string());
    const std::string read = read_one(file, out);
    if (!kind.empty() && read != kind)
      throw ConfigError(fmt::format("{}: {}: expected another page of the list in {}: {}", file.string(), read,
                                    files.front().string(), kind));
    kind = read;
  }
  PriceList list = out.take();
  list.kind = kind;
  if (list.prices.empty())
    throw ConfigError(fmt::format(
        "{}: {}: without a price of any instance of the catalog; it has {}{}{}", files.front().string(), kind,
        counted(list.unknown.size(), "other"), list.parts.empty() ? "" : ", and prices of parts: " + list.parts.front(),
        list.no_sheet.empty() ? "" : ", and GPUs without a data sheet: " + list.no_sheet.begin()->second));
  return list;
}

namespace {

/// The stated price; nothing if the price follows from what owning the machine costs.
std::optional<MicroUsdPerHour> amount_of(const OrderedJson& price) {
  const auto amount = price.find("per_hour");
  return amount == price.end() ? std::nullopt
                               : std::optional(parse_quantity<MicroUsdPerHour>(amount->get<std::string>()));
}

/// A listed price that differs by more than half from what the catalog had, as a line; else empty. Half of the spot
/// prices of these catalogs moved by less than that in a year (price_doubt.cpp).
std::string jump_of(const ListedPrice& listed, MicroUsdPerHour before) {
  const Price& price = listed.price;
  if (2 * std::abs(price.per_hour.value - before.value) <= before.value) return "";
  return fmt::format("{}: {} in {} {}: from {} to {} USD/h", listed.where, listed.instance,
                     price.zone.empty() ? price.region : price.zone, to_string(price.market), decimal(before),
                     decimal(price.per_hour));
}

/// Adds an instance to the file's. What joins its GPUs is as in an instance with the same ones, if possible as many.
void add_instance(OrderedJson& instances, const std::string& name, const NewInstance& facts) {
  OrderedJson entry = {{"gpu", facts.gpu}, {"gpus", facts.gpus}};
  if (facts.vcpus > 0) entry["vcpus"] = facts.vcpus;
  if (facts.memory > 0) entry["memory"] = fmt::format("{:g}GiB", facts.memory);
  const std::pair<std::string, OrderedJson>* like = nullptr;
  std::pair<bool, bool> best;
  for (const auto& other : instances.items()) {
    const OrderedJson& its = other.second;
    if (its["gpu"] != facts.gpu) continue;
    const bool as_many = its["gpus"] == facts.gpus, linked = its.contains("gpu_links");
    // The links of a mesh or a tree name their GPUs.
    if (linked && !as_many && !its["gpu_links"].value("kind", "").starts_with("nv")) continue;
    const std::pair fit(linked || facts.gpus == 1, as_many);
    if (like == nullptr || fit > best) like = &other, best = fit;
  }
  if (like != nullptr)
    for (const char* link : {"gpu_links", "host_link"})
      if (like->second.contains(link) && (facts.gpus > 1 || std::string_view(link) == "host_link")) {
        entry[link] = like->second[link];
        entry[link]["unconfirmed"] = "of " + like->first;
      }
  entry["source"] = "UPDATE: a list that describes it";
  entry["prices"] = OrderedJson::array();
  instances[name] = std::move(entry);
}

}  // namespace

Merged merge_prices(std::string_view platform, const PriceList& list) {
  OrderedJson content = OrderedJson::parse(platform, /*comments=*/true);
  OrderedJson& instances = content["instances"];
  Merged merged;
  content["sources"]["UPDATE"] = "price lists merged by ganymede catalog --update: a " + list.kind;
  for (const auto& [name, facts] : list.fresh) add_instance(instances, name, facts);
  // Where each instance's price of a region, zone and market stands.
  std::map<std::string, std::map<std::array<std::string, 3>, std::size_t>> places;
  for (const ListedPrice& listed : list.prices) {
    OrderedJson& prices = instances.at(listed.instance)["prices"];
    if (prices.is_null()) prices = OrderedJson::array();
    const auto [known, first] = places.try_emplace(listed.instance);
    if (first)
      for (std::size_t i = 0; i < prices.size(); ++i)
        known->second[{prices[i]["region"], prices[i].value("zone", ""), prices[i]["market"]}] = i;
    const Price& price = listed.price;
    OrderedJson entry = {{"region", price.region}};
    if (!price.zone.empty()) entry["zone"] = price.zone;
    entry["market"] = to_string(price.market);
    entry["per_hour"] = decimal(price.per_hour) + "USD/h";
    const auto [place, fresh] =
        known->second.try_emplace({price.region, price.zone, std::string(to_string(price.market))}, prices.size());
    if (!fresh && prices[place->second].contains("interrupted_per_month"))
      entry["interrupted_per_month"] = prices[place->second]["interrupted_per_month"];
    if (price.spread)
      entry["spread"] = {{"low", decimal(price.spread->first) + "USD/h"},
                         {"high", decimal(price.spread->second) + "USD/h"}};
    entry["as_of"] = price.as_of;
    entry["source"] = price.origin.source;
    if (!price.origin.unconfirmed.empty()) entry["unconfirmed"] = price.origin.unconfirmed;
    if (!price.origin.notes.empty()) entry["notes"] = price.origin.notes;
    if (fresh) {
      ++merged.added;
      prices.push_back(std::move(entry));
    } else {
      OrderedJson& old = prices[place->second];
      const auto before = amount_of(old);
      ++(before == price.per_hour ? merged.same : merged.changed);
      if (std::string jump = before ? jump_of(listed, *before) : ""; !jump.empty())
        merged.jumps.push_back(std::move(jump));
      old = std::move(entry);
    }
  }
  merged.text = content.dump(2) + "\n";
  return merged;
}

std::optional<std::string> day_written(const std::filesystem::path& file) {
  std::error_code missing;
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(file, missing));
  if (missing) return {};
  return format_time(std::chrono::floor<std::chrono::seconds>(written).time_since_epoch().count()).substr(0, 10);
}

}  // namespace ganymede::platforms
