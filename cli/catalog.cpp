// ganymede catalog: what can be rented where and at which price, how old prices are and where they come from.

#include "platforms/catalog.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog_lists.hpp"
#include "platforms/offers.hpp"
#include "platforms/sky_catalogs.hpp"
#include "report/offers.hpp"

namespace ganymede::cli {
namespace {

struct CatalogOptions {
  std::vector<std::string> providers;  ///< names or platform files
  platforms::OfferChoice choice;
  std::string today, as_of;
  std::vector<std::string> update;  ///< the pages of one list
  std::vector<std::string> exchange;
  bool sky = false;  ///< --from-skypilot
  std::string sky_folder;
  std::vector<std::string> clouds;
  bool check = false, zones = false;
};

/// Writes a platform file for each of SkyPilot's lists into the folder --output, once all of them are made.
void make_platforms(const platforms::SkyCatalogs& catalogs, Shared& shared) {
  auto waiting = show_elapsed(shared, "reading SkyPilot's lists");
  const platforms::SkyPlatforms made = platforms::platforms_of_sky(catalogs);
  waiting.reset();
  if (shared.output.empty() && made.files.size() > 1)
    throw ConfigError(
        fmt::format("--from-skypilot: makes {} platforms; -o names the folder for them, or --cloud one of them",
                    made.files.size()));
  for (const std::string& note : made.remarks) remark(shared, note);
  if (shared.output.empty() || (made.files.size() == 1 && shared.output.ends_with(".json")))
    return emit(shared, made.files.front().text);
  std::error_code failed;
  std::filesystem::create_directories(shared.output, failed);
  if (!std::filesystem::is_directory(shared.output))
    throw ConfigError(fmt::format("--output {}: expected a folder, and none can be made there", shared.output));
  for (const auto& file : made.files) check_writable(std::filesystem::path(shared.output) / (file.name + ".json"));
  for (const auto& file : made.files)
    write_file(std::filesystem::path(shared.output) / (file.name + ".json"), file.text);
}

void update(const CatalogOptions& options, Shared& shared) {
  if (options.providers.size() != 1)
    throw ConfigError(
        "--update: name the one catalog that the prices go into, with --provider NAME or a platform file");
  auto waiting = show_elapsed(shared, "reading " + fmt::format("{}", fmt::join(options.update, ", ")));
  if (options.choice.regions.size() > 1) throw ConfigError("--update: name one --region for a list that says none");
  const platforms::UpdatedCatalog updated =
      platforms::update_catalog({.catalog = options.providers.front(),
                                 .list = options.update,
                                 .today = options.today,
                                 .as_of = options.as_of,
                                 .region = options.choice.regions.empty() ? "" : options.choice.regions.front(),
                                 .exchange = options.exchange});
  waiting.reset();
  for (const std::string& note : updated.remarks) remark(shared, note);
  emit(shared, updated.text);
}

void run_catalog(CatalogOptions options, Shared& shared) {
  if (!options.sky) check_output(shared);
  if (options.today.empty()) options.today = format_time(stated_now()).substr(0, 10);
  for (const auto& [name, date] : {std::pair{"today", options.today}, std::pair{"as-of", options.as_of}})
    if (!date.empty() && !is_date(date)) throw ConfigError(fmt::format("--{} {}: expected YYYY-MM-DD", name, date));
  if (!options.as_of.empty() && options.as_of > options.today)
    throw ConfigError(fmt::format("--as-of {}: is in the future (today is {})", options.as_of, options.today));
  if (options.sky) return make_platforms({options.sky_folder, options.clouds, options.as_of, options.today}, shared);
  if (!options.update.empty()) {
    for (const std::string& page : options.update) keep_input(shared, page);
    return update(options, shared);
  }
  std::vector<platforms::Platform> platforms;
  for (const std::string& name : options.providers.empty() ? platforms::provider_names() : options.providers)
    platforms.push_back(platforms::load_catalog(name, "."));
  const std::size_t width = result_width(shared);
  if (options.check) {
    const OrderedJson found = platforms::findings_in(platforms, options.today);
    return emit(shared, shared.format == "json"  ? found["findings"].dump(2) + "\n"
                        : shared.format == "csv" ? report::findings_csv(found)
                                                 : report::findings_text(found, width));
  }
  OrderedJson offers = platforms::selected_offers(platforms, options.choice, options.today);
  if (offers.empty()) remark(shared, "nothing in the catalog is all of that");
  const std::string& sort = options.choice.sort;
  const report::OffersLayout layout{!sort.empty(), sort == platforms::kByGpuHour, options.zones};
  if (shared.format == "table") return emit(shared, report::offers_table(offers, layout, width));
  if (shared.format == "csv") return emit(shared, report::offers_csv(offers));
  for (OrderedJson& offer : offers) offer.erase("owned");
  emit(shared, offers.dump(2) + "\n");
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
  list("--gpu", options->choice.gpus, "only these GPUs or families: A100, V100, CPU", suggest("@rented-gpus"));
  list("--region", options->choice.regions,
       "only offers with a price in these regions; with --update: that of a list without", suggest("@regions"));
  list("--instance", options->choice.instances, "only these instance types", suggest("@instances"));
  list("--market", options->choice.markets, "only these markets: on-demand, spot, reserved-1y, reserved-3y",
       one_of(platforms::market_names()));
  command.add_option("--sort", options->choice.sort, "cheapest first, by the hour of one GPU or of the whole instance")
      .check(one_of({platforms::kByGpuHour, platforms::kByHour}));
  command.add_flag("--zones", options->zones, "also list zones that have prices of their own");
  const Option check =
      command.add_flag("--check", options->check, "list facts that should be checked before they are relied on");
  command
      .add_option("--update", options->update,
                  "a price list to merge into --provider's catalog, written to -o; or its pages, separated by commas")
      .excludes(check)
      .delimiter(',');
  const Option sky =
      command
          .add_option(
              "--from-skypilot", options->sky_folder,
              "make a platform file of each of SkyPilot's lists, of the newest version; default: ~/.sky/catalogs")
          .type_name("[DIR]")
          .expected(0, 1)
          .excludes(check);
  command.add_option("--cloud", options->clouds, "only these clouds of SkyPilot's, such as lambda,runpod")
      .needs(sky)
      .delimiter(',');
  command.add_option("--as-of", options->as_of, "the day on which a price list without a date was read");
  command.add_option("--exchange", options->exchange, "dollars for one unit of another currency, such as EUR=1.08");
  command.add_option("--today", options->today, "day to which the age of prices is counted; default: today");
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, command, &shared] {
    for (const auto& [name, values] : command.given())
      if (name == "--from-skypilot") options->sky = true;
    run_catalog(*options, shared);
  });
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
              "                                                        an owner's or a tool's price list, in a copy\n"
              "                                                        that a scenario names as its \"catalog\"\n"
              "  ganymede catalog --from-skypilot --cloud lambda,runpod -o clouds   what SkyPilot has on this disk\n",
          .about =
              "Lists what can be rented where, at which price on which market, how old each price is and where it\n"
              "comes from. \"no price\": none was found. \"retired\": it cannot be rented any more, is kept for old\n"
              "runs and left out of plans.",
          .declare = declare_catalog};
}

}  // namespace ganymede::cli
