// ganymede catalog: what can be rented where and at which price, how old prices are and where they come from.

#include "platforms/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/catalog_offers.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/check.hpp"
#include "platforms/price_list.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

std::string findings_text(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options,
                          const std::string& format, std::size_t width) {
  report::Table table({"provider", "kind", "where", "what"});
  std::map<std::string, std::map<std::string, int>> counts;
  std::set<std::string> kinds;
  OrderedJson json = OrderedJson::array();
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
  const std::vector<Offer> offers = selected_offers(platforms, options);
  if (offers.empty()) remark(shared, "nothing in the catalog is all of that");
  emit(shared, shared.format == "json"  ? offers_json(offers, options.today)
               : shared.format == "csv" ? offers_csv(offers)
                                        : offers_table(offers, options, result_width(shared)));
}

void declare_catalog(Parser command, Shared& shared) {
  auto options = std::make_shared<CatalogOptions>();
  command
      .add_option("--provider", options->providers, "a provider's catalog, or the path of a platform file (repeatable)")
      .check(suggest("@providers @files"))
      .delimiter(',');
  command.add_option("--gpu", options->gpu, "only this GPU or family: A100, V100, CPU").check(suggest("@rented-gpus"));
  command.add_option("--region", options->region, "only offers with a price in this region").check(suggest("@regions"));
  command.add_option("--instance", options->instance, "only this instance type").check(suggest("@instances"));
  command.add_option("--market", options->market, "only this market: on-demand, spot, reserved-1y, reserved-3y")
      .check(one_of(platforms::market_names()));
  command.add_option("--sort", options->sort, "cheapest first, by the hour of one GPU or of the whole instance")
      .check(one_of({kByGpuHour, kByHour}));
  command.add_flag("--zones", options->zones, "also list zones that have prices of their own");
  const Option check =
      command.add_flag("--check", options->check, "list facts that should be checked before they are relied on");
  command.add_option("--update", options->update, "a price list to merge into --provider's catalog, written to -o")
      .excludes(check);
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
              "  ganymede catalog --sort usd-per-gpu-hour --market spot\n"
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
