#pragma once
// Reads price lists as providers and tools publish them, and merges them into a platform file.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// One price of a list.
struct ListedPrice {
  std::string instance;
  Price price;        ///< its origin names the list
  std::string where;  ///< "vms.csv: line 17"
};

struct PriceList {
  std::string kind;  ///< "SkyPilot catalog", "AWS price list", "Azure retail prices", "platform file", "price table"
  std::vector<ListedPrice> prices;
};

struct PriceListOptions {
  std::string today;                       ///< YYYY-MM-DD; a later price is an error
  std::string as_of = "undated";           ///< date of the prices of a list that has none
  std::map<std::string, double> exchange;  ///< dollars for one unit of another currency, such as "EUR"
};

/// Reads a list in one of these forms, which is recognized by its content:
///  - `ganymede.platform/1`, for its prices;
///  - a CSV with the columns instance, region, market, usd_per_hour, as_of and perhaps zone and source, as
///    `ganymede catalog --format csv` prints;
///  - SkyPilot's vms.csv;
///  - the JSON of AWS's price list of EC2 (Linux, shared tenancy, no software; reserved: standard, no upfront);
///  - the JSON of Azure's retail prices (virtual machines, Linux; a reservation's price is of its whole term).
/// Rows of other services and systems are skipped; so are rows of instances that are not among `known`, which are
/// counted in `unknown` (if given). Throws ConfigError with the place for a price that is negative or not a number, a
/// date in the future, a currency without exchange rate, or two values for one price.
PriceList read_price_list(const std::filesystem::path& file, const std::vector<std::string>& known,
                          const PriceListOptions& options, std::map<std::string, int>* unknown = nullptr);

/// The result of merge_prices(), with the number of prices that were changed, added or already the same.
struct Merged {
  std::string text;  ///< the platform file with the prices in it
  std::size_t changed = 0, added = 0, same = 0;
};

/// Merges the list into the text of a platform file, which must have all its instances. A listed price, with date and
/// source, replaces that of the same instance, region, zone and market; everything else stays.
Merged merge_prices(std::string_view platform, const PriceList& list);

}  // namespace ganymede::platforms
