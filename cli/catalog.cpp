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

/// Says what the lines are, how many there are, and the first ones.
void remark_some(const std::string& what, const std::vector<std::string>& lines, const Shared& shared) {
  constexpr std::size_t kShown = 5;
  if (lines.empty()) return;
  const std::size_t shown = std::min(lines.size(), kShown);
  std::string text = fmt::format("{}: {}", what, lines.size());
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + lines[i];
  if (shown < lines.size()) text += fmt::format("\n  and {} more", lines.size() - shown);
  remark(shared, text);
}

/// What should be known of a list that was merged.
void remark_on(const platforms::PriceList& list, const platforms::Merged& merged, const Shared& shared) {
  remark_some("prices that changed by more than half (look at them before a plan rests on them)", merged.jumps, shared);
  remark_some("passed over, because they are prices of hosts without their GPUs", list.parts, shared);
  if (!list.next_page.empty())
    remark(shared, fmt::format("the list is not whole: it goes on at {}; give further pages behind --update, separated "
                               "by commas",
                               list.next_page));
  if (std::any_of(list.prices.begin(), list.prices.end(),
                  [](const platforms::ListedPrice& listed) { return listed.price.as_of == "undated"; }))
    remark(shared, "prices without a date count as doubtful: say with --as-of on which day the list was read");
  if (list.unknown.empty()) return;
  std::string first;
  for (const auto& [instance, rows] : list.unknown) {
    if (first.size() > 60) break;
    if (!instance.empty()) first += (first.empty() ? "" : ", ") + instance;
  }
  remark(shared, fmt::format("passed over: {} instances that the catalog does not have, such as {}",
                             list.unknown.size(), first));
}

void update(const CatalogOptions& options, Shared& shared) {
  if (options.providers.size() != 1)
    throw ConfigError(
        "--update: name the one catalog that the prices go into, with --provider NAME or a platform file");
  const std::string& name = options.providers.front();
  const std::string text = platforms::is_provider(name) ? std::string(platforms::catalog_text(name)) : read_file(name);
  const platforms::Platform platform = platforms::load_catalog(name, ".");
  auto waiting = show_elapsed(shared, "reading " + fmt::format("{}", fmt::join(options.update, ", ")));
  const platforms::PriceList list = platforms::read_price_list(
      {options.update.begin(), options.update.end()}, platform,
      {options.today, options.as_of.empty() ? "undated" : options.as_of, exchange_rates(options.exchange)});
  const platforms::Merged merged = platforms::merge_prices(text, list);
  platforms::read_platform(JsonNode::parse(merged.text, "the merged catalog"));
  waiting.reset();
  remark(shared,
         fmt::format("{}: {}: {} prices of {}: {} changed, {} new, {} as before", fmt::join(options.update, ", "),
                     list.kind, list.prices.size(), platform.name, merged.changed, merged.added, merged.same));
  remark_on(list, merged, shared);
  emit(shared, merged.text);
}

void run_catalog(CatalogOptions options, Shared& shared) {
  check_output(shared);
  if (options.today.empty()) options.today = format_time(stated_now()).substr(0, 10);
  for (const auto& [name, date] : {std::pair{"today", options.today}, std::pair{"as-of", options.as_of}})
    if (!date.empty() && !is_date(date)) throw ConfigError(fmt::format("--{} {}: expected YYYY-MM-DD", name, date));
  if (!options.as_of.empty() && options.as_of > options.today)
    throw ConfigError(fmt::format("--as-of {}: is in the future (today is {})", options.as_of, options.today));
  if (!options.update.empty()) {
    for (const std::string& page : options.update) keep_input(shared, page);
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
  const auto list = [&](const char* flag, std::vector<std::string>& names, const char* what, const Check& check) {
    command.add_option(flag, names, what).check(check).delimiter(',');
  };
  list("--gpu", options->gpus, "only these GPUs or families: A100, V100, CPU", suggest("@rented-gpus"));
  list("--region", options->regions, "only offers with a price in these regions", suggest("@regions"));
  list("--instance", options->instances, "only these instance types", suggest("@instances"));
  list("--market", options->markets, "only these markets: on-demand, spot, reserved-1y, reserved-3y",
       one_of(platforms::market_names()));
  command.add_option("--sort", options->sort, "cheapest first, by the hour of one GPU or of the whole instance")
      .check(one_of({kByGpuHour, kByHour}));
  command.add_flag("--zones", options->zones, "also list zones that have prices of their own");
  const Option check =
      command.add_flag("--check", options->check, "list facts that should be checked before they are relied on");
  command
      .add_option("--update", options->update,
                  "a price list to merge into --provider's catalog, written to -o; or its pages, separated by commas")
      .excludes(check)
      .delimiter(',');
  command.add_option("--as-of", options->as_of, "the day on which a price list without a date was read");
  command.add_option("--exchange", options->exchange, "dollars for one unit of another currency, such as EUR=1.08");
  command.add_option("--today", options->today, "day to which the age of prices is counted; default: today");
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
