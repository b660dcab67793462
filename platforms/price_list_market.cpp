// Lists of marketplaces, on which hosts ask prices of their own. The price of a machine is then a distribution: its
// median stands in the catalog as a price that is unconfirmed, with what the list says of the others. Formats:
// docs.vast.ai/api-reference/search/search-offers and graphql-spec.runpod.io.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "platforms/check.hpp"
#include "platforms/price_collector.hpp"
#include "platforms/providers.hpp"

namespace ganymede::platforms {
namespace {

bool is_true(const Listed& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

/// The ends between which 19 in 20 of the sorted values lie; of fewer than 40 all do, since no end can be left out.
std::pair<double, double> ends_of(const std::vector<double>& sorted) {
  constexpr double kLow = 0.025, kHigh = 0.975;
  if (sorted.size() < 40) return {sorted.front(), sorted.back()};
  return {quantile(sorted, kLow), quantile(sorted, kHigh)};
}

/// What hosts ask for machines of one kind at one place.
struct Asked {
  std::vector<double> prices, bids, reliability;
  std::string where;  ///< the first offer
};

/// Describes sorted values: "median of 12 hosts' offers, of which 19 in 20 ask 1.80 to 3.10 USD/h; hosts differ and may
/// withdraw; reliability 98.1 %".
std::string spread_of(const std::vector<double>& prices, const std::vector<double>& reliability) {
  std::string out = prices.size() == 1
                        ? "one host's offer"
                        : fmt::format("median of {} hosts' offers, {} {:.3g} to {:.3g} USD/h", prices.size(),
                                      prices.size() < 40 ? "which ask" : "of which 19 in 20 ask", ends_of(prices).first,
                                      ends_of(prices).second);
  out += "; hosts differ and may withdraw";
  if (!reliability.empty()) out += fmt::format("; reliability {:.1f} %", 100 * quantile(reliability, 0.5));
  return out;
}

/// The platform's name of a place, which may have the continent behind it: "France, FR, EU" of "France, FR".
std::string region_of(const Instance& instance, const std::string& place) {
  for (const Price& price : instance.prices)
    if (!place.empty() && price.region.starts_with(place)) return price.region;
  return place.empty() ? "any" : place;
}

}  // namespace

void read_vast_offers(const Listed& offers, const std::string& file, PriceCollector& out) {
  std::map<std::pair<std::string, std::string>, Asked> asked;  // by instance and region
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Listed& offer = offers.at(i);
    const std::string where = fmt::format("{}: /offers/{}", file, i), name = text_of(offer, "gpu_name");
    if (name.empty()) throw ConfigError(where + ": found no gpu_name, expected an offer of Vast.ai");
    if (!is_true(offer, "rentable", true) || is_true(offer, "rented", false)) continue;
    const double gpus = number_of(offer, "num_gpus"), memory = number_of(offer, "gpu_ram") / 1024;
    const double price = number_of(offer, "dph_total");
    if (!(price > 0) || !(gpus >= 1)) throw ConfigError(where + ": expected a dph_total above 0 and a num_gpus from 1");
    const double bid = number_of(offer, "min_bid");
    for (const double each : {price / gpus, bid / gpus})
      if (each < 0 || each > kMaxDevicePrice)
        throw ConfigError(
            fmt::format("{}: found {:g} USD/h for each of its GPUs, expected 0 to {:g}", where, each, kMaxDevicePrice));
    const Gpu* sheet = out.sheet(name, std::isfinite(memory) ? memory : 0);
    const auto& instances = out.platform().instances;
    const auto machine = std::find_if(instances.begin(), instances.end(), [&](const Instance& instance) {
      return sheet != nullptr && instance.gpu == sheet->name && instance.gpus == static_cast<int>(gpus);
    });
    if (machine == instances.end()) {
      out.skip(fmt::format("{:g}x {}", gpus, name));
      continue;
    }
    Asked& here = asked[{machine->name, region_of(*machine, text_of(offer, "geolocation"))}];
    if (here.where.empty()) here.where = where;
    here.prices.push_back(price);
    if (bid > 0) here.bids.push_back(bid);
    for (const char* key : {"reliability2", "reliability"})
      if (const double share = number_of(offer, key); share >= 0 && share <= 1) {
        here.reliability.push_back(share);
        break;
      }
  }
  for (auto& [at, here] : asked) {
    for (std::vector<double>* values : {&here.prices, &here.bids, &here.reliability})
      std::sort(values->begin(), values->end());
    const auto add = [&, &at = at, &here = here](Market market, const std::vector<double>& asked_prices,
                                                 const std::string& rule) {
      if (asked_prices.empty()) return;
      out.add(at.first, here.where, at.second, "", market, quantile(asked_prices, 0.5), "");
      out.doubt_last(spread_of(asked_prices, here.reliability) + rule);
      if (asked_prices.size() > 1)
        std::apply([&](double low, double high) { out.spread_last(low, high); }, ends_of(asked_prices));
    };
    add(Market::on_demand, here.prices, "");
    add(Market::spot, here.bids, fmt::format("; the lowest bid: {}", provider_of("vast").bids));
  }
}

void read_runpod_gpus(const Listed& gpus, const std::string& file, PriceCollector& out) {
  struct Kind {
    const char *suffix, *price, *spot;
  };
  constexpr Kind kKinds[] = {{"COMMUNITY", "communityPrice", "communitySpotPrice"},
                             {"SECURE", "securePrice", "secureSpotPrice"}};
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Listed& row = gpus.at(i);
    const std::string name = text_of(row, text_of(row, "displayName").empty() ? "id" : "displayName");
    const double memory = number_of(row, "memoryInGb");
    const Gpu* sheet = out.sheet(name, std::isfinite(memory) ? memory : 0);
    if (sheet == nullptr) {
      out.skip(name);
      continue;
    }
    for (const Instance& instance : out.platform().instances)
      for (const Kind& kind : kKinds) {
        if (instance.gpu != sheet->name || instance.name.find(kind.suffix) == std::string::npos) continue;
        std::set<std::string> regions;
        for (const Price& price : instance.prices) regions.insert(price.region);
        if (regions.empty()) regions.insert("any");
        const auto add = [&](Market market, const char* key, const std::string& region, const std::string& why) {
          const double each = number_of(row, key);
          if (std::isnan(each) && row.contains(key) && !row.at(key).is_null())
            throw ConfigError(fmt::format("{}: /gpuTypes/{}/{}: expected a number", file, i, key));
          if (!(std::abs(each) > 0)) return;  // absent, null or 0: it cannot be had
          out.add(instance.name, fmt::format("{}: /gpuTypes/{}/{}", file, i, key), region, "", market,
                  each * instance.gpus, "");
          if (!why.empty()) out.doubt_last(why);
        };
        const std::string hosts =
            std::string_view(kind.suffix) == "COMMUNITY"
                ? "hosts differ and may withdraw, and the list says neither how much nor how often"
                : "";
        for (const std::string& region : regions) {
          add(Market::on_demand, kind.price, region, hosts);
          add(Market::spot, kind.spot, region,
              (hosts.empty() ? "" : hosts + "; ") + std::string(provider_of("runpod").bids));
        }
      }
  }
}

}  // namespace ganymede::platforms
