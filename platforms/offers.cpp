#include "platforms/offers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/usd.hpp"
#include "platforms/check.hpp"
#include "platforms/gpu_names.hpp"

namespace ganymede::platforms {
namespace {

/// An instance at one of its prices.
struct Offer {
  const Platform* platform;
  const Instance* instance;
  const Price* price;  ///< nullptr: the instance has no price
};

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
void check_asked(const char* option, const std::vector<std::string>& asked, const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& found : asked) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return is_same(name, found); }))
      continue;
    throw ConfigError(fmt::format("--{} {}: not in the catalog; it has {}{}", option, found, list_of(names),
                                  did_you_mean(found, names)));
  }
}

/// The names that are asked for, each GPU as the catalogs write it.
std::vector<std::string> as_written(const std::vector<Platform>& platforms, const std::vector<std::string>& asked) {
  std::vector<Gpu> gpus;
  for (const Platform& platform : platforms)
    for (const Instance& instance : platform.instances) gpus.push_back(platform.gpu_of(instance));
  std::vector<std::string> out;
  for (const std::string& one : asked)
    for (const std::string& name : gpus_named(one, gpus)) out.push_back(name);
  return out;
}

/// The offers that are asked for, in the order of the catalogs.
std::vector<Offer> offers_of(const std::vector<Platform>& platforms, const OfferChoice& options) {
  std::set<std::string> gpus, regions, instances;
  const std::vector<std::string> asked = as_written(platforms, options.gpus);
  std::vector<Offer> offers;
  for (const Platform& platform : platforms)
    for (const Instance& instance : platform.instances) {
      const Gpu& gpu = platform.gpu_of(instance);
      gpus.insert({gpu.name, gpu.family});
      instances.insert(instance.name);
      for (const Price& price : instance.prices) regions.insert(price.region);
      if (!is_asked(asked, gpu.name)) continue;
      if (!is_asked(options.instances, instance.name)) continue;
      for (const Price& price : instance.prices)
        if (is_asked(options.regions, price.region) && is_asked(options.markets, std::string(to_string(price.market))))
          offers.push_back({&platform, &instance, &price});
      if (instance.prices.empty() && options.regions.empty() && options.markets.empty())
        offers.push_back({&platform, &instance, nullptr});
    }
  check_asked("gpu", asked, gpus);
  check_asked("region", options.regions, regions);
  check_asked("instance", options.instances, instances);
  return offers;
}

/// The key that --sort compares: instances that can still be rented come first.
std::pair<bool, double> sort_key(const Instance& instance, double usd, const OfferChoice& options) {
  return {!instance.retired.empty(), options.sort == kByGpuHour ? usd / instance.gpus : usd};
}

/// Sorts by --sort. A processor is no GPU: unless --gpu asks for it, it is left out of a comparison by the GPU-hour.
void sort_offers(std::vector<Offer>& offers, const OfferChoice& options) {
  if (options.sort.empty()) return;
  if (options.sort == kByGpuHour && options.gpus.empty())
    std::erase_if(offers,
                  [](const Offer& offer) { return offer.platform->gpu_of(*offer.instance).kind == Gpu::Kind::cpu; });
  const auto key = [&](const Offer& offer) {
    return sort_key(*offer.instance,
                    offer.price ? usd_of(offer.price->per_hour) : std::numeric_limits<double>::infinity(), options);
  };
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const Offer& one, const Offer& other) { return key(one) < key(other); });
}

OrderedJson offer_rows(const std::vector<Offer>& offers, const std::string& today) {
  OrderedJson out = OrderedJson::array();
  for (const Offer& offer : offers) {
    const Instance& instance = *offer.instance;
    const Price* price = offer.price;
    OrderedJson row = {{"provider", offer.platform->name},
                       {"instance", instance.name},
                       {"gpu", instance.gpu},
                       {"gpus", instance.gpus}};
    row["vcpus"] = instance.vcpus > 0 ? OrderedJson(instance.vcpus) : OrderedJson(nullptr);
    row["memory_bytes"] = instance.memory ? OrderedJson(instance.memory->si) : OrderedJson(nullptr);
    row["retired"] = instance.retired.empty() ? OrderedJson(nullptr) : OrderedJson(instance.retired);
    row["region"] = price ? OrderedJson(price->region) : OrderedJson(nullptr);
    row["zone"] = price && !price->zone.empty() ? OrderedJson(price->zone) : OrderedJson(nullptr);
    row["market"] = price ? OrderedJson(to_string(price->market)) : OrderedJson(nullptr);
    row["usd_per_hour"] = price ? OrderedJson(decimal(price->per_hour)) : OrderedJson(nullptr);
    row["usd_per_hour_number"] = price ? OrderedJson(usd_of(price->per_hour)) : OrderedJson(nullptr);
    row["usd_per_gpu_hour"] = price ? OrderedJson(usd_of(price->per_hour) / instance.gpus) : OrderedJson(nullptr);
    row["as_of"] = price ? OrderedJson(price->as_of) : OrderedJson(nullptr);
    row["age_days"] =
        price && price->as_of != "undated" ? OrderedJson(days_between(price->as_of, today)) : OrderedJson(nullptr);
    row["source"] = price ? OrderedJson(price->origin.source) : OrderedJson(nullptr);
    row["unconfirmed"] =
        price && !price->origin.unconfirmed.empty() ? OrderedJson(price->origin.unconfirmed) : OrderedJson(nullptr);
    row["owned"] = price != nullptr && price->ownership;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

OrderedJson selected_offers(const std::vector<Platform>& platforms, const OfferChoice& choice,
                            const std::string& today) {
  std::vector<Offer> offers = offers_of(platforms, choice);
  sort_offers(offers, choice);
  return offer_rows(offers, today);
}

OrderedJson findings_in(const std::vector<Platform>& platforms, const std::string& today) {
  OrderedJson findings = OrderedJson::array(), counts = OrderedJson::array();
  for (const Platform& platform : platforms) {
    for (const Finding& finding : check_platform(platform, today))
      findings.push_back(
          {{"provider", platform.name}, {"kind", finding.kind}, {"where", finding.where}, {"what", finding.what}});
    std::size_t prices = 0;
    for (const Instance& instance : platform.instances) prices += instance.prices.size();
    counts.push_back({{"provider", platform.name}, {"instances", platform.instances.size()}, {"prices", prices}});
  }
  return {{"findings", findings}, {"platforms", counts}};
}

}  // namespace ganymede::platforms
