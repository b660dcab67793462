// ganymede catalog: what can be rented where and at which price, how old prices are and where they come from.

#include "platforms/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "platforms/check.hpp"
#include "platforms/price_list.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

struct CatalogOptions {
  std::vector<std::string> providers;  // names or platform files
  std::string gpu, region, market, instance, today, update, as_of;
  std::vector<std::string> exchange;
  bool check = false, zones = false;
};

/// An instance at one of its prices.
struct Offer {
  const platforms::Platform* platform;
  const platforms::Instance* instance;
  const platforms::Price* price;  // nullptr: the instance has no price
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

void refuse(const std::string& option, const std::string& found, const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  const auto close = nearest(found, names);
  throw ConfigError(fmt::format("--{} {}: not in the catalog; it has {}{}", option, found, list_of(names),
                                close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

/// The offers that the options select. Throws ConfigError, with the known names, for a name that is not in the
/// catalogs.
std::vector<Offer> offers_of(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options) {
  std::set<std::string> gpus, regions, instances;
  bool gpu_known = options.gpu.empty(), region_known = options.region.empty(), known = options.instance.empty();
  std::vector<Offer> offers;
  for (const platforms::Platform& platform : platforms)
    for (const platforms::Instance& instance : platform.instances) {
      const platforms::Gpu& gpu = platform.gpu_of(instance);
      gpus.insert({gpu.name, gpu.family});
      instances.insert(instance.name);
      known = known || instance.name == options.instance;
      const bool is_gpu =
          options.gpu.empty() || lower(gpu.name) == lower(options.gpu) || lower(gpu.family) == lower(options.gpu);
      gpu_known = gpu_known || is_gpu;
      for (const platforms::Price& price : instance.prices) {
        regions.insert(price.region);
        region_known = region_known || price.region == options.region;
      }
      if (!is_gpu || (!options.instance.empty() && instance.name != options.instance)) continue;
      for (const platforms::Price& price : instance.prices)
        if ((options.region.empty() || price.region == options.region) &&
            (options.market.empty() || platforms::to_string(price.market) == options.market))
          offers.push_back({&platform, &instance, &price});
      if (instance.prices.empty() && options.region.empty() && options.market.empty())
        offers.push_back({&platform, &instance, nullptr});
    }
  if (!gpu_known) refuse("gpu", options.gpu, gpus);
  if (!region_known) refuse("region", options.region, regions);
  if (!known) refuse("instance", options.instance, instances);
  return offers;
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

/// A table with one row for each instance and place, and its markets side by side.
std::string as_table(const std::vector<Offer>& offers, const CatalogOptions& options, std::size_t width) {
  report::Table table({"provider", "instance", "GPU", ">GPUs", ">vCPUs", ">memory", "region", ">on-demand USD/h",
                       ">age", ">spot", ">age", ">1 year", ">3 years", ">age", "source", "note"});
  struct Place {
    std::map<platforms::Market, const platforms::Price*> prices;
    const Offer* offer;
  };
  std::vector<std::pair<std::string, Place>> places;
  std::map<std::string, std::size_t> index;
  for (const Offer& offer : offers) {
    if (offer.price && !offer.price->zone.empty() && !options.zones) continue;
    const std::string where = offer.price == nullptr      ? ""
                              : offer.price->zone.empty() ? offer.price->region
                                                          : offer.price->zone;
    const std::string key = offer.platform->name + "\n" + offer.instance->name + "\n" + where;
    const auto [at, fresh] = index.emplace(key, places.size());
    if (fresh) places.push_back({where, {{}, &offer}});
    if (offer.price) places[at->second].second.prices[offer.price->market] = offer.price;
  }
  const platforms::Platform* above = nullptr;
  for (const auto& entry : places) {
    const std::string& where = entry.first;
    const Place& place = entry.second;
    const platforms::Instance& instance = *place.offer->instance;
    const platforms::Platform& platform = *place.offer->platform;
    if (above != nullptr && above != &platform) table.rule();
    above = &platform;
    const auto usd = [&](platforms::Market market) {
      const auto found = place.prices.find(market);
      return found == place.prices.end() ? "" : decimal(found->second->per_hour);
    };
    const auto old = [&](platforms::Market market) {
      const auto found = place.prices.find(market);
      return found == place.prices.end() ? "" : age(*found->second, options.today);
    };
    std::set<std::string> sources;
    bool unconfirmed = false, owned = false;
    for (const auto& [market, price] : place.prices) {
      sources.insert(price->ownership ? "ownership" : short_source(price->origin.source));
      unconfirmed = unconfirmed || !price->origin.unconfirmed.empty();
      owned = owned || price->ownership;
    }
    std::string source;
    for (const auto& one : sources) source += (source.empty() ? "" : ", ") + one;
    std::string note = instance.retired.empty() ? "" : "retired";
    if (unconfirmed) note += note.empty() ? "unconfirmed" : ", unconfirmed";
    if (owned) note += note.empty() ? "and electricity" : ", and electricity";
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    table.add({platform.name, instance.name, gpu.name, std::to_string(instance.gpus),
               instance.vcpus > 0 ? std::to_string(instance.vcpus) : "",
               instance.memory ? to_string(*instance.memory) : "", where.empty() ? "-" : where,
               place.prices.empty() ? "no price" : usd(platforms::Market::on_demand), old(platforms::Market::on_demand),
               usd(platforms::Market::spot), old(platforms::Market::spot), usd(platforms::Market::reserved_1y),
               usd(platforms::Market::reserved_3y), old(platforms::Market::reserved_1y), source, note});
  }
  return table.text(width);
}

std::string as_csv(const std::vector<Offer>& offers) {
  report::Table table({"provider", "instance", "gpu", "gpus", "vcpus", "memory_bytes", "region", "zone", "market",
                       "usd_per_hour", "as_of", "source", "retired"});
  for (const Offer& offer : offers) {
    const platforms::Instance& instance = *offer.instance;
    const platforms::Price* price = offer.price;
    table.add({offer.platform->name, instance.name, instance.gpu, std::to_string(instance.gpus),
               std::to_string(instance.vcpus), instance.memory ? fmt::format("{:.0f}", instance.memory->si) : "",
               price ? price->region : "", price ? price->zone : "",
               price ? std::string(platforms::to_string(price->market)) : "", price ? decimal(price->per_hour) : "",
               price ? price->as_of : "", price ? price->origin.source : "", instance.retired});
  }
  return table.csv();
}

std::string as_json(const std::vector<Offer>& offers, const std::string& today) {
  using OrderedJson = nlohmann::ordered_json;
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

std::string findings_text(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options,
                          const std::string& format, std::size_t width) {
  report::Table table({"provider", "kind", "where", "what"});
  std::map<std::string, std::map<std::string, int>> counts;
  std::set<std::string> kinds;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const platforms::Platform& platform : platforms)
    for (const platforms::Finding& finding : platforms::check_platform(platform, options.today)) {
      table.add({platform.name, finding.kind, finding.where, finding.what});
      json.push_back(
          {{"provider", platform.name}, {"kind", finding.kind}, {"where", finding.where}, {"what", finding.what}});
      ++counts[platform.name][finding.kind];
      kinds.insert(finding.kind);
    }
  if (format == "json") return json.dump(2) + "\n";
  if (format == "csv") return table.csv();
  std::vector<std::string> names = {"provider", ">instances", ">prices"};
  for (const std::string& kind : kinds) names.push_back(">" + kind);
  report::Table summary(names);
  for (const platforms::Platform& platform : platforms) {
    std::size_t prices = 0;
    for (const platforms::Instance& instance : platform.instances) prices += instance.prices.size();
    std::vector<std::string> cells = {platform.name, std::to_string(platform.instances.size()), std::to_string(prices)};
    for (const std::string& kind : kinds) cells.push_back(std::to_string(counts[platform.name][kind]));
    summary.add(cells);
  }
  return table.text(width) + "\n" + summary.text(width);
}

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

void update(const CatalogOptions& options, Shared& shared) {
  if (options.providers.size() != 1)
    throw ConfigError(
        "--update: name the one catalog that the prices go into, with --provider NAME or a platform file");
  const std::string& name = options.providers.front();
  const std::string text = platforms::is_provider(name) ? std::string(platforms::catalog_text(name)) : read_file(name);
  const platforms::Platform platform = platforms::load_catalog(name, ".");
  std::vector<std::string> known;
  for (const platforms::Instance& instance : platform.instances) known.push_back(instance.name);
  std::map<std::string, int> unknown;
  auto waiting = show_elapsed(shared, "reading " + options.update);
  const platforms::PriceList list = platforms::read_price_list(
      options.update, known,
      {options.today, options.as_of.empty() ? "undated" : options.as_of, exchange_rates(options.exchange)}, &unknown);
  const platforms::Merged merged = platforms::merge_prices(text, list);
  platforms::read_platform(JsonNode::parse(merged.text, "the merged catalog"));
  waiting.reset();
  remark(shared, fmt::format("{}: {}: {} prices of {}: {} changed, {} new, {} as before", options.update, list.kind,
                             list.prices.size(), platform.name, merged.changed, merged.added, merged.same));
  if (!unknown.empty()) {
    std::string first;
    for (const auto& [instance, rows] : unknown) {
      if (first.size() > 60) break;
      if (!instance.empty()) first += (first.empty() ? "" : ", ") + instance;
    }
    remark(shared,
           fmt::format("passed over: {} instances that the catalog does not have, such as {}", unknown.size(), first));
  }
  emit(shared, merged.text);
}

void run_catalog(CatalogOptions options, Shared& shared) {
  check_output(shared);
  if (options.today.empty()) options.today = format_time(now()).substr(0, 10);
  for (const auto& [name, date] : {std::pair{"today", options.today}, std::pair{"as-of", options.as_of}})
    if (!date.empty() && !is_date(date)) throw ConfigError(fmt::format("--{} {}: expected YYYY-MM-DD", name, date));
  if (!options.as_of.empty() && options.as_of > options.today)
    throw ConfigError(fmt::format("--as-of {}: is in the future (today is {})", options.as_of, options.today));
  if (!options.update.empty()) {
    keep_input(shared, options.update);
    return update(options, shared);
  }
  std::vector<platforms::Platform> platforms;
  for (const std::string& name : options.providers.empty() ? platforms::provider_names() : options.providers)
    platforms.push_back(platforms::load_catalog(name, "."));
  if (options.check) return emit(shared, findings_text(platforms, options, shared.format, result_width(shared)));
  const std::vector<Offer> offers = offers_of(platforms, options);
  if (offers.empty()) remark(shared, "nothing in the catalog is all of that");
  emit(shared, shared.format == "json"  ? as_json(offers, options.today)
               : shared.format == "csv" ? as_csv(offers)
                                        : as_table(offers, options, result_width(shared)));
}

void declare_catalog(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<CatalogOptions>();
  command
      .add_option("--provider", options->providers, "a provider's catalog, or the path of a platform file (repeatable)")
      ->check(suggest("@providers @files"))
      ->delimiter(',');
  command.add_option("--gpu", options->gpu, "only this GPU or family: A100, V100, CPU")->check(suggest("@gpus"));
  command.add_option("--region", options->region, "only offers with a price in this region")
      ->check(suggest("@regions"));
  command.add_option("--instance", options->instance, "only this instance type")->check(suggest("@instances"));
  command.add_option("--market", options->market, "only this market: on-demand, spot, reserved-1y, reserved-3y")
      ->check(CLI::IsMember(platforms::market_names()));
  command.add_flag("--zones", options->zones, "also list zones that have prices of their own");
  auto* check =
      command.add_flag("--check", options->check, "list facts that should be checked before they are relied on");
  command.add_option("--update", options->update, "a price list to merge into --provider's catalog, written to -o")
      ->excludes(check);
  command.add_option("--as-of", options->as_of, "date of a price list that has none");
  command.add_option("--exchange", options->exchange, "dollars for one unit of another currency, such as EUR=1.08");
  command.add_option("--today", options->today, "day on which ages are counted; default: today");
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_catalog(*options, shared); });
}

}  // namespace

Command catalog_command() {
  return {.name = "catalog",
          .summary = "what can be rented where, and how old its prices are",
          .examples =
              "  ganymede catalog --gpu A100\n"
              "  ganymede catalog --provider aws --region us-east-1 --format csv -o prices.csv\n"
              "  ganymede catalog --check --provider aws               facts in it that nobody has confirmed\n"
              "  ganymede catalog --provider aws --update vms.csv --as-of 2026-11-20 -o aws.json\n"
              "                                                        prices of SkyPilot, AWS or Azure merged into a "
              "copy,\n"
              "                                                        which a scenario names as its \"catalog\"\n",
          .about =
              "Lists what can be rented where, at which price on which market, how old each price is and where it\n"
              "comes from. \"no price\": none was found. \"retired\": it cannot be rented any more, is kept for old\n"
              "runs and left out of plans.",
          .declare = declare_catalog};
}

}  // namespace ganymede::cli
