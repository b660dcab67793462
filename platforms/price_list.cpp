#include "platforms/price_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {

std::optional<double> decimal_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void PriceCollector::add(const std::string& instance, const std::string& where, std::string region, std::string zone,
                         Market market, double per_hour, std::string as_of, const std::string& currency,
                         std::string notes) {
  if (!knows(instance)) return skip(instance);
  double rate = 1;
  if (currency != "USD") {
    const auto found = options_.exchange.find(currency);
    if (found == options_.exchange.end())
      throw ConfigError(
          fmt::format("{}: found a price in {}, expected USD; --exchange {}=1.08 says what one {} is worth", where,
                      currency, currency, currency));
    rate = found->second;
  }
  if (!std::isfinite(per_hour) || per_hour < 0 || per_hour * rate > 1e9)
    throw ConfigError(
        fmt::format("{}: found a price of {} of {}, expected a number from 0", where, per_hour, instance));
  if (region.empty()) throw ConfigError(fmt::format("{}: {} has a price and no region", where, instance));
  if (as_of != "undated" && !is_date(as_of))
    throw ConfigError(fmt::format("{}: found the date \"{}\", expected YYYY-MM-DD", where, as_of));
  if (as_of != "undated" && as_of > options_.today)
    throw ConfigError(
        fmt::format("{}: found the date {}, which is in the future (today is {})", where, as_of, options_.today));
  ListedPrice listed;
  listed.instance = instance;
  listed.where = where;
  listed.price.region = std::move(region);
  listed.price.zone = std::move(zone);
  listed.price.market = market;
  listed.price.per_hour = {std::llround(per_hour * rate * 1e6)};
  listed.price.as_of = std::move(as_of);
  listed.price.origin.source = source_;
  listed.price.origin.notes =
      rate == 1 ? std::move(notes) : fmt::format("{:g} {} at {:g} USD", per_hour, currency, rate);
  const Key key{listed.instance, listed.price.region, listed.price.zone, market};
  const auto [place, fresh] = index_.emplace(key, list_.prices.size());
  if (fresh) return list_.prices.push_back(std::move(listed));
  const ListedPrice& first = list_.prices[place->second];
  if (first.price.per_hour != listed.price.per_hour)
    throw ConfigError(fmt::format("{}: a second {} price of {} in {}: {} here, {} at {}", where, to_string(market),
                                  instance, listed.price.zone.empty() ? listed.price.region : listed.price.zone,
                                  to_string(listed.price.per_hour), to_string(first.price.per_hour), first.where));
}

void PriceCollector::end_page(std::string next) {
  if (next.empty()) has_last_page_ = true;
  if (list_.next_page.empty()) list_.next_page = std::move(next);
}

PriceList PriceCollector::take() {
  if (has_last_page_) list_.next_page.clear();
  return std::move(list_);
}

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

/// The first character that is not white space or part of a byte order mark; 0 if there is none.
char first_of(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return at == std::string_view::npos ? '\0' : text[at];
}

}  // namespace

PriceList read_price_list(const std::vector<std::filesystem::path>& files, const Platform& platform,
                          const PriceListOptions& options) {
  PriceCollector out(platform, options);
  std::string kind;
  for (const std::filesystem::path& file : files) {
    const std::string text = read_file(file);
    out.begin_file(file.filename().string());
    const char first = first_of(text);
    const bool json = first == '{' || (first == '/' && file.extension() == ".json");
    const std::string read =
        json ? read_json_prices(text, file.string(), out) : read_csv(CsvTable::parse(text, file.string()), out);
    if (!kind.empty() && read != kind)
      throw ConfigError(fmt::format("{}: {}: expected another page of the list in {}: {}", file.string(), read,
                                    files.front().string(), kind));
    kind = read;
  }
  PriceList list = out.take();
  list.kind = kind;
  if (list.prices.empty())
    throw ConfigError(fmt::format("{}: {}: without a price of any instance of the catalog; it has {} others{}",
                                  files.front().string(), kind, list.unknown.size(),
                                  list.parts.empty() ? "" : ", and prices of parts: " + list.parts.front()));
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

}  // namespace

Merged merge_prices(std::string_view platform, const PriceList& list) {
  OrderedJson content = OrderedJson::parse(platform, /*comments=*/true);
  Merged merged;
  content["sources"]["UPDATE"] = "price lists merged by ganymede catalog --update: a " + list.kind;
  for (const ListedPrice& listed : list.prices) {
    OrderedJson& prices = content["instances"].at(listed.instance)["prices"];
    if (prices.is_null()) prices = OrderedJson::array();
    const Price& price = listed.price;
    OrderedJson entry = {{"region", price.region}};
    if (!price.zone.empty()) entry["zone"] = price.zone;
    entry["market"] = to_string(price.market);
    entry["per_hour"] = decimal(price.per_hour) + "USD/h";
    const auto same_place = [&](const OrderedJson& old) {
      return old["region"] == price.region && old.value("zone", "") == price.zone && old["market"] == entry["market"];
    };
    const auto old = std::find_if(prices.begin(), prices.end(), same_place);
    const bool fresh = old == prices.end();
    if (!fresh && old->contains("interrupted_per_month"))
      entry["interrupted_per_month"] = (*old)["interrupted_per_month"];
    entry["as_of"] = price.as_of;
    entry["source"] = price.origin.source;
    if (!price.origin.notes.empty()) entry["notes"] = price.origin.notes;
    if (fresh) {
      ++merged.added;
      prices.push_back(std::move(entry));
    } else {
      const auto before = amount_of(*old);
      ++(before == price.per_hour ? merged.same : merged.changed);
      if (std::string jump = before ? jump_of(listed, *before) : ""; !jump.empty())
        merged.jumps.push_back(std::move(jump));
      *old = std::move(entry);
    }
  }
  merged.text = content.dump(2) + "\n";
  return merged;
}

}  // namespace ganymede::platforms
