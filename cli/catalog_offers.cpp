#include "cli/catalog_offers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

bool is_same(const std::string& one, const std::string& other) { return lower(one) == lower(other); }

/// True if the name is asked for, or nothing is.
bool is_asked(const std::vector<std::string>& asked, const std::string& name) {
  return asked.empty() ||
         std::any_of(asked.begin(), asked.end(), [&](const std::string& one) { return is_same(one, name); });
}

/// Throws ConfigError for a name that is not known.
void check_names(const char* option, const std::vector<std::string>& asked, const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& found : asked) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return is_same(name, found); }))
      continue;
    const auto close = nearest(found, names);
    throw ConfigError(fmt::format("--{} {}: not in the catalog; it has {}{}", option, found, list_of(names),
                                  close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
  }
}

/// The offers that the options select. Throws ConfigError, with the known names, for a name that is not in the
/// catalogs.
std::vector<Offer> offers_of(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options) {
  std::set<std::string> gpus, regions, instances;
  std::vector<Offer> offers;
  for (const platforms::Platform& platform : platforms)
    for (const platforms::Instance& instance : platform.instances) {
      const platforms::Gpu& gpu = platform.gpu_of(instance);
      gpus.insert({gpu.name, gpu.family});
      instances.insert(instance.name);
      for (const platforms::Price& price : instance.prices) regions.insert(price.region);
      if (!is_asked(options.gpus, gpu.name) && !is_asked(options.gpus, gpu.family)) continue;
      if (!is_asked(options.instances, instance.name)) continue;
      for (const platforms::Price& price : instance.prices)
        if (is_asked(options.regions, price.region) &&
            is_asked(options.markets, std::string(platforms::to_string(price.market))))
          offers.push_back({&platform, &instance, &price});
      if (instance.prices.empty() && options.regions.empty() && options.markets.empty())
        offers.push_back({&platform, &instance, nullptr});
    }
  check_names("gpu", options.gpus, gpus);
  check_names("region", options.regions, regions);
  check_names("instance", options.instances, instances);
  return offers;
}

/// What --sort compares: what can still be rented comes first.
std::pair<bool, double> sort_key(const platforms::Instance& instance, double usd, const CatalogOptions& options) {
  return {!instance.retired.empty(), options.sort == kByGpuHour ? usd / instance.gpus : usd};
}

/// Sorts by --sort. A processor is no GPU: unless --gpu asks for it, it is left out of a comparison by the GPU-hour.
void sort_offers(std::vector<Offer>& offers, const CatalogOptions& options) {
  if (options.sort.empty()) return;
  if (options.sort == kByGpuHour && options.gpus.empty())
    std::erase_if(offers, [](const Offer& offer) {
      return offer.platform->gpu_of(*offer.instance).kind == platforms::Gpu::Kind::cpu;
    });
  const auto key = [&](const Offer& offer) {
    return sort_key(*offer.instance,
                    offer.price ? usd_of(offer.price->per_hour) : std::numeric_limits<double>::infinity(), options);
  };
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const Offer& one, const Offer& other) { return key(one) < key(other); });
}

std::string age(const platforms::Price& price, const std::string& today) {
  if (price.as_of == "undated") return "undated";
  const int days = days_between(price.as_of, today);
  return days < 0 ? "in the future" : days < 60 ? fmt::format("{} d", days) : fmt::format("{} mo", days / 30);
}

/// The short name in a price's `source`, which the catalog's table of sources explains.
std::string short_source(const std::string& source) {
  const std::string merged = "UPDATE: ";
  return source.starts_with(merged) ? source.substr(merged.size()) : source.substr(0, source.find(':'));
}

/// An instance at one place, with its prices there.
struct Place {
  std::string where;  ///< region or zone; empty: the instance has no price
  const Offer* offer = nullptr;
  std::map<platforms::Market, const platforms::Price*> prices;

  /// The lowest of the prices, in dollars; infinite if there is none.
  double least_usd_per_hour() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [market, price] : prices) least = std::min(least, usd_of(price->per_hour));
    return least;
  }
};

std::vector<Place> places_of(const std::vector<Offer>& offers, const CatalogOptions& options) {
  std::vector<Place> places;
  std::map<std::string, std::size_t> index;
  for (const Offer& offer : offers) {
    if (offer.price && !offer.price->zone.empty() && !options.zones) continue;
    const std::string where = offer.price == nullptr      ? ""
                              : offer.price->zone.empty() ? offer.price->region
                                                          : offer.price->zone;
    const std::string key = offer.platform->name + "\n" + offer.instance->name + "\n" + where;
    const auto [at, fresh] = index.emplace(key, places.size());
    if (fresh) places.push_back({where, &offer, {}});
    if (offer.price) places[at->second].prices[offer.price->market] = offer.price;
  }
  if (options.sort.empty()) return places;
  std::stable_sort(places.begin(), places.end(), [&](const Place& one, const Place& other) {
    return sort_key(*one.offer->instance, one.least_usd_per_hour(), options) <
           sort_key(*other.offer->instance, other.least_usd_per_hour(), options);
  });
  return places;
}

/// Where the prices come from, and what should be known about them.
std::pair<std::string, std::string> source_and_note(const Place& place) {
  std::set<std::string> sources;
  bool unconfirmed = false, owned = false;
  for (const auto& [market, price] : place.prices) {
    sources.insert(price->ownership ? "ownership" : short_source(price->origin.source));
    unconfirmed = unconfirmed || !price->origin.unconfirmed.empty();
    owned = owned || price->ownership;
  }
  std::string note = place.offer->instance->retired.empty() ? "" : "retired";
  if (unconfirmed) note += note.empty() ? "unconfirmed" : ", unconfirmed";
  if (owned) note += note.empty() ? "and electricity" : ", and electricity";
  return {fmt::format("{}", fmt::join(sources, ", ")), note};
}

}  // namespace

std::vector<Offer> selected_offers(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options) {
  std::vector<Offer> offers = offers_of(platforms, options);
  sort_offers(offers, options);
  return offers;
}

std::string offers_table(const std::vector<Offer>& offers, const CatalogOptions& options, std::size_t width) {
  const bool by_gpu = options.sort == kByGpuHour;
  std::vector<std::string> heads = {"provider",         "instance", "GPU",   ">GPUs", ">vCPUs",  ">memory",  "region",
                                    ">on-demand USD/h", ">age",     ">spot", ">age",  ">1 year", ">3 years", ">age",
                                    "source",           "note"};
  if (by_gpu) heads.insert(heads.begin() + 4, ">least USD/GPU-h");
  report::Table table(heads);
  const platforms::Platform* above = nullptr;
  for (const Place& place : places_of(offers, options)) {
    const platforms::Instance& instance = *place.offer->instance;
    const platforms::Platform& platform = *place.offer->platform;
    if (above != nullptr && above != &platform && options.sort.empty()) table.rule();
    above = &platform;
    const auto usd = [&](platforms::Market market) {
      const auto found = place.prices.find(market);
      return found == place.prices.end() ? "" : report::price_cell(decimal(found->second->per_hour));
    };
    const auto old = [&](platforms::Market market) {
      const auto found = place.prices.find(market);
      return found == place.prices.end() ? "" : age(*found->second, options.today);
    };
    const auto [source, note] = source_and_note(place);
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    std::vector<std::string> cells = {platform.name,
                                      instance.name,
                                      gpu.name,
                                      std::to_string(instance.gpus),
                                      instance.vcpus > 0 ? std::to_string(instance.vcpus) : "",
                                      instance.memory ? to_string(*instance.memory) : "",
                                      place.where.empty() ? "-" : place.where,
                                      place.prices.empty() ? "no price" : usd(platforms::Market::on_demand),
                                      old(platforms::Market::on_demand),
                                      usd(platforms::Market::spot),
                                      old(platforms::Market::spot),
                                      usd(platforms::Market::reserved_1y),
                                      usd(platforms::Market::reserved_3y),
                                      old(platforms::Market::reserved_1y),
                                      source,
                                      note};
    if (by_gpu)
      cells.insert(cells.begin() + 4,
                   place.prices.empty() ? "" : fmt::format("{:.4g}", place.least_usd_per_hour() / instance.gpus));
    table.add(cells);
  }
  return table.text(width);
}

std::string offers_csv(const std::vector<Offer>& offers) {
  report::Table table({"provider", "instance", "gpu", "gpus", "vcpus", "memory_bytes", "region", "zone", "market",
                       "usd_per_hour", "as_of", "source", "retired", "usd_per_gpu_hour"});
  for (const Offer& offer : offers) {
    const platforms::Instance& instance = *offer.instance;
    const platforms::Price* price = offer.price;
    table.add({offer.platform->name, instance.name, instance.gpu, std::to_string(instance.gpus),
               std::to_string(instance.vcpus), instance.memory ? fmt::format("{:.0f}", instance.memory->si) : "",
               price ? price->region : "", price ? price->zone : "",
               price ? std::string(platforms::to_string(price->market)) : "", price ? decimal(price->per_hour) : "",
               price ? price->as_of : "", price ? price->origin.source : "", instance.retired,
               price ? fmt::format("{:.6g}", usd_of(price->per_hour) / instance.gpus) : ""});
  }
  return table.csv();
}

std::string offers_json(const std::vector<Offer>& offers, const std::string& today) {
  OrderedJson out = OrderedJson::array();
  for (const Offer& offer : offers) {
    const platforms::Instance& instance = *offer.instance;
    const platforms::Price* price = offer.price;
    OrderedJson row = {{"provider", offer.platform->name},
                       {"instance", instance.name},
                       {"gpu", instance.gpu},
                       {"gpus", instance.gpus}};
    row["vcpus"] = instance.vcpus > 0 ? OrderedJson(instance.vcpus) : OrderedJson(nullptr);
    row["memory_bytes"] = instance.memory ? OrderedJson(instance.memory->si) : OrderedJson(nullptr);
    row["retired"] = instance.retired.empty() ? OrderedJson(nullptr) : OrderedJson(instance.retired);
    row["region"] = price ? OrderedJson(price->region) : OrderedJson(nullptr);
    row["zone"] = price && !price->zone.empty() ? OrderedJson(price->zone) : OrderedJson(nullptr);
    row["market"] = price ? OrderedJson(platforms::to_string(price->market)) : OrderedJson(nullptr);
    row["usd_per_hour"] = price ? OrderedJson(decimal(price->per_hour)) : OrderedJson(nullptr);
    row["usd_per_hour_number"] = price ? OrderedJson(usd_of(price->per_hour)) : OrderedJson(nullptr);
    row["usd_per_gpu_hour"] = price ? OrderedJson(usd_of(price->per_hour) / instance.gpus) : OrderedJson(nullptr);
    row["as_of"] = price ? OrderedJson(price->as_of) : OrderedJson(nullptr);
    row["age_days"] =
        price && price->as_of != "undated" ? OrderedJson(days_between(price->as_of, today)) : OrderedJson(nullptr);
    row["source"] = price ? OrderedJson(price->origin.source) : OrderedJson(nullptr);
    row["unconfirmed"] =
        price && !price->origin.unconfirmed.empty() ? OrderedJson(price->origin.unconfirmed) : OrderedJson(nullptr);
    out.push_back(std::move(row));
  }
  return out.dump(2) + "\n";
}

}  // namespace ganymede::cli
