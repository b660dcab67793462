#include "platforms/update_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
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

/// Remarks on what a user should know about a list that was merged.
void remark_on(const PriceList& list, const Merged& merged, std::vector<std::string>& remarks) {
  remark_some("prices that changed by more than half (look at them before a plan rests on them)", merged.jumps,
              remarks);
  remark_some("passed over, because they are prices of hosts without their GPUs", list.parts, remarks);
  if (!list.next_page.empty())
    remarks.push_back(
        fmt::format("the list is not whole: it goes on at {}; give further pages behind --update, separated "
                    "by commas",
                    list.next_page));
  if (std::any_of(list.prices.begin(), list.prices.end(),
                  [](const ListedPrice& listed) { return listed.price.as_of == "undated"; }))
    remarks.emplace_back("prices without a date count as doubtful: say with --as-of on which day the list was read");
  if (list.unknown.empty()) return;
  std::string first;
  for (const auto& [instance, rows] : list.unknown) {
    if (first.size() > 60) break;
    if (!instance.empty()) first += (first.empty() ? "" : ", ") + instance;
  }
  remarks.push_back(
      fmt::format("passed over: {} instances that the catalog does not have, such as {}", list.unknown.size(), first));
}

}  // namespace

UpdatedCatalog update_catalog(const CatalogUpdate& update) {
  const std::string& name = update.catalog;
  const std::string text = is_provider(name) ? std::string(catalog_text(name)) : read_file(name);
  const Platform platform = load_catalog(name, ".");
  const PriceList list =
      read_price_list({update.list.begin(), update.list.end()}, platform,
                      {update.today, update.as_of.empty() ? "undated" : update.as_of, exchange_rates(update.exchange)});
  const Merged merged = merge_prices(text, list);
  read_platform(JsonNode::parse(merged.text, "the merged catalog"));
  UpdatedCatalog out{merged.text, {}};
  out.remarks.push_back(fmt::format("{}: {}: {} prices of {}: {} changed, {} new, {} as before",
                                    fmt::join(update.list, ", "), list.kind, list.prices.size(), platform.name,
                                    merged.changed, merged.added, merged.same));
  remark_on(list, merged, out.remarks);
  return out;
}

}  // namespace ganymede::platforms
