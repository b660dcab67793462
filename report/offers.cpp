#include "report/offers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

/// The text of a member; "" for null.
std::string cell(const OrderedJson& row, const char* key) {
  const OrderedJson& value = row[key];
  return value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
}

/// The age of a price; "" where there is none.
std::string age(const OrderedJson& row) {
  if (row["age_days"].is_null()) return cell(row, "as_of");  // "undated"
  const int days = row["age_days"].get<int>();
  return days < 0 ? "in the future" : days < 60 ? fmt::format("{} d", days) : fmt::format("{} mo", days / 30);
}

/// The short name in a price's `source`, which the catalog's table of sources explains.
std::string short_source(const std::string& source) {
  const std::string merged = "UPDATE: ";
  return source.starts_with(merged) ? source.substr(merged.size()) : source.substr(0, source.find(':'));
}

/// An instance at one place, with the rows of its prices there.
struct PricedPlace {
  std::string where;  ///< region or zone; empty: the instance has no price
  const OrderedJson* row = nullptr;
  std::map<std::string, const OrderedJson*> markets = {};

  /// The lowest of the prices, in dollars; infinite if there is none.
  double least_usd_per_hour() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [market, price] : markets) least = std::min(least, (*price)["usd_per_hour_number"].get<double>());
    return least;
  }
  double least_usd_per_gpu_hour() const { return least_usd_per_hour() / (*row)["gpus"].get<int>(); }
};

std::vector<PricedPlace> places_of(const OrderedJson& rows, const OffersLayout& layout) {
  std::vector<PricedPlace> places;
  std::map<std::string, std::size_t> index;
  for (const OrderedJson& row : rows) {
    const std::string zone = cell(row, "zone"), market = cell(row, "market");
    if (!zone.empty() && !layout.with_zones) continue;
    const std::string where = zone.empty() ? cell(row, "region") : zone;
    const std::string key = cell(row, "provider") + "\n" + cell(row, "instance") + "\n" + where;
    const auto [at, fresh] = index.emplace(key, places.size());
    if (fresh) places.push_back({where, &row});
    if (!market.empty()) places[at->second].markets[market] = &row;
  }
  if (!layout.sorted) return places;
  const auto rank = [&](const PricedPlace& place) {  // instances that can still be rented come first
    return std::pair(!(*place.row)["retired"].is_null(),
                     layout.per_gpu ? place.least_usd_per_gpu_hour() : place.least_usd_per_hour());
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](const PricedPlace& one, const PricedPlace& other) { return rank(one) < rank(other); });
  return places;
}

/// Where the prices come from, and what should be known about them.
std::pair<std::string, std::string> source_and_note(const PricedPlace& place) {
  std::set<std::string> sources;
  bool unconfirmed = false, owned = false;
  for (const auto& [market, price] : place.markets) {
    const bool is_owned = (*price)["owned"].get<bool>();
    sources.insert(is_owned ? "ownership" : short_source(cell(*price, "source")));
    unconfirmed = unconfirmed || !(*price)["unconfirmed"].is_null();
    owned = owned || is_owned;
  }
  std::string note = (*place.row)["retired"].is_null() ? "" : "retired";
  if (unconfirmed) note += note.empty() ? "unconfirmed" : ", unconfirmed";
  if (owned) note += note.empty() ? "and electricity" : ", and electricity";
  return {fmt::format("{}", fmt::join(sources, ", ")), note};
}

Table findings_table(const OrderedJson& found) {
  Table table({"provider", "kind", "where", "what"});
  for (const OrderedJson& finding : found["findings"])
    table.add({cell(finding, "provider"), cell(finding, "kind"), cell(finding, "where"), cell(finding, "what")});
  return table;
}

}  // namespace

std::string offers_table(const OrderedJson& rows, const OffersLayout& layout, std::size_t width) {
  std::vector<std::string> heads = {"provider",         "instance", "GPU",   ">GPUs", ">vCPUs",  ">memory",  "region",
                                    ">on-demand USD/h", ">age",     ">spot", ">age",  ">1 year", ">3 years", ">age",
                                    "source",           "note"};
  if (layout.per_gpu) heads.insert(heads.begin() + 4, ">least USD/GPU-h");
  Table table(heads);
  std::string above;
  for (const PricedPlace& place : places_of(rows, layout)) {
    const OrderedJson& row = *place.row;
    const std::string provider = cell(row, "provider");
    if (!above.empty() && above != provider && !layout.sorted) table.rule();
    above = provider;
    const auto usd = [&](const char* market) {
      const auto found = place.markets.find(market);
      return found == place.markets.end() ? "" : price_cell(cell(*found->second, "usd_per_hour"));
    };
    const auto old = [&](const char* market) {
      const auto found = place.markets.find(market);
      return found == place.markets.end() ? "" : age(*found->second);
    };
    const auto [source, note] = source_and_note(place);
    std::vector<std::string> cells = {
        provider,
        cell(row, "instance"),
        cell(row, "gpu"),
        cell(row, "gpus"),
        cell(row, "vcpus"),
        row["memory_bytes"].is_null() ? "" : to_string(Bytes{row["memory_bytes"].get<double>()}),
        place.where.empty() ? "-" : place.where,
        place.markets.empty() ? "no price" : usd("on-demand"),
        old("on-demand"),
        usd("spot"),
        old("spot"),
        usd("reserved-1y"),
        usd("reserved-3y"),
        old("reserved-1y"),
        source,
        note};
    if (layout.per_gpu)
      cells.insert(cells.begin() + 4,
                   place.markets.empty() ? "" : fmt::format("{:.4g}", place.least_usd_per_gpu_hour()));
    table.add(cells);
  }
  return table.text(width);
}

std::string offers_csv(const OrderedJson& rows) {
  Table table({"provider", "instance", "gpu", "gpus", "vcpus", "memory_bytes", "region", "zone", "market",
               "usd_per_hour", "as_of", "source", "retired", "usd_per_gpu_hour"});
  for (const OrderedJson& row : rows) {
    const auto number = [&](const char* key, const char* form) {
      return row[key].is_null() ? "" : fmt::format(fmt::runtime(form), row[key].get<double>());
    };
    table.add({cell(row, "provider"), cell(row, "instance"), cell(row, "gpu"), cell(row, "gpus"),
               row["vcpus"].is_null() ? "0" : cell(row, "vcpus"), number("memory_bytes", "{:.0f}"), cell(row, "region"),
               cell(row, "zone"), cell(row, "market"), cell(row, "usd_per_hour"), cell(row, "as_of"),
               cell(row, "source"), cell(row, "retired"), number("usd_per_gpu_hour", "{:.6g}")});
  }
  return table.csv();
}

std::string findings_text(const OrderedJson& found, std::size_t width) {
  std::map<std::string, std::map<std::string, int>> counts;  // by provider and kind
  std::set<std::string> kinds;
  for (const OrderedJson& finding : found["findings"]) {
    ++counts[cell(finding, "provider")][cell(finding, "kind")];
    kinds.insert(cell(finding, "kind"));
  }
  std::vector<std::string> names = {"provider", ">instances", ">prices"};
  for (const std::string& kind : kinds) names.push_back(">" + kind);
  Table summary(names);
  for (const OrderedJson& platform : found["platforms"]) {
    const std::string provider = cell(platform, "provider");
    std::vector<std::string> cells = {provider, cell(platform, "instances"), cell(platform, "prices")};
    for (const std::string& kind : kinds) cells.push_back(std::to_string(counts[provider][kind]));
    summary.add(cells);
  }
  return findings_table(found).text(width) + "\n" + summary.text(width);
}

std::string findings_csv(const OrderedJson& found) { return findings_table(found).csv(); }

}  // namespace ganymede::report
