#include "platforms/update_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_list.hpp"

namespace ganymede::platforms {
namespace {

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

/// The day on which the oldest of the files was written, at the latest today.
std::string day_of(const std::vector<std::string>& files, std::string today) {
  for (const std::string& file : files)
    if (const auto day = day_written(file)) today = std::min(today, *day);
  return today;
}

/// Remarks on lines: their title, how many there are, and the first ones.
void remark_some(const std::string& title, const std::vector<std::string>& lines, std::vector<std::string>& remarks) {
  constexpr std::size_t kShown = 5;
  if (lines.empty()) return;
  const std::size_t shown = std::min(lines.size(), kShown);
  std::string text = fmt::format("{}: {}", title, lines.size());
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + lines[i];
  if (shown < lines.size()) text += fmt::format("\n  and {} more", lines.size() - shown);
  remarks.push_back(text);
}

/// Remarks on what a user should know about a list that was merged. `read_on` is the day that its file tells, if that
/// is the date of prices.
void remark_on(const PriceList& list, const Merged& merged, const std::string& read_on,
               std::vector<std::string>& remarks) {
  remark_some("prices that changed by more than half (look at them before a plan rests on them)", merged.jumps,
              remarks);
  remark_some("passed over, because they are prices of hosts without their GPUs", list.parts, remarks);
  std::vector<std::string> lines;
  std::map<std::array<std::string, 2>, MicroUsdPerHour> on_demand;
  for (const ListedPrice& one : list.prices)
    if (one.price.market == Market::on_demand) on_demand[{one.instance, one.price.region}] = one.price.per_hour;
  for (const ListedPrice& one : list.prices) {
    const auto other = on_demand.find({one.instance, one.price.region});
    if (one.price.market == Market::spot && other != on_demand.end() && one.price.per_hour > other->second)
      lines.push_back(fmt::format("{}: {} in {}: {} USD/h on spot, {} on demand", one.where, one.instance,
                                  one.price.zone.empty() ? one.price.region : one.price.zone,
                                  decimal(one.price.per_hour), decimal(other->second)));
  }
  remark_some("prices of spot above those on demand, taken as they stand", lines, remarks);
  lines.clear();
  for (const auto& [name, facts] : list.fresh)
    lines.push_back(fmt::format("{}: {} x {}, {}", name, facts.gpus, facts.gpu,
                                counted(static_cast<std::size_t>(facts.vcpus), "vCPU")));
  remark_some("new instances, with the links of others and without a NIC", lines, remarks);
  lines.clear();
  for (const auto& [gpu, line] : list.no_sheet) lines.push_back(line);
  remark_some("passed over, because the catalog has no data sheet of their GPU", lines, remarks);
  if (list.undated && !read_on.empty())
    remarks.push_back(
        fmt::format("the list does not say its date: its prices are of {}, when its file was written; say with "
                    "--as-of on which day it was read",
                    read_on));
  if (list.unknown.empty()) return;
  std::string first;
  for (const auto& [instance, rows] : list.unknown) {
    if (first.size() > 60) break;
    if (!instance.empty()) first += (first.empty() ? "" : ", ") + instance;
  }
  remarks.push_back(fmt::format("passed over: {} that the catalog does not have, such as {}",
                                counted(list.unknown.size(), "instance"), first));
}

}  // namespace

UpdatedCatalog update_catalog(const CatalogUpdate& update) {
  const std::string& name = update.catalog;
  const std::string text = is_provider(name) ? std::string(catalog_text(name)) : read_file(name);
  const Platform platform = load_catalog(name, ".");
  const std::string read_on = update.as_of.empty() ? day_of(update.list, update.today) : "";
  const PriceList list = read_price_list({update.list.begin(), update.list.end()}, platform,
                                         {.today = update.today,
                                          .as_of = update.as_of.empty() ? read_on : update.as_of,
                                          .exchange = exchange_rates(update.exchange),
                                          .region = update.region});
  const Merged merged = merge_prices(text, list);
  read_platform(JsonNode::parse(merged.text, "the merged catalog"));
  UpdatedCatalog out{merged.text, {}};
  out.remarks.push_back(fmt::format("{}: {}: {} of {}: {} changed, {} new, {} as before", fmt::join(update.list, ", "),
                                    list.kind, counted(list.prices.size(), "price"), platform.name, merged.changed,
                                    merged.added, merged.same));
  remark_on(list, merged, read_on, out.remarks);
  return out;
}

}  // namespace ganymede::platforms
