#pragma once
// Prices as providers and tools publish them, merged into a platform file.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede {

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
  std::string today;                       ///< YYYY-MM-DD: no price may be from later
  std::string as_of = "undated";           ///< of lists that carry no date
  std::map<std::string, double> exchange;  ///< dollars for one unit of another currency, such as "EUR"
};

/// Reads a list of any of these forms, told apart by what stands in it:
///  - `ganymede.platform/1`, for its prices;
///  - a CSV with the columns instance, region, market, usd_per_hour, as_of and perhaps zone and source, as
///    `ganymede catalog --format csv` prints;
///  - SkyPilot's vms.csv;
///  - the JSON of AWS's price list of EC2 (Linux, shared tenancy, no software; reserved: standard, no upfront);
///  - the JSON of Azure's retail prices (virtual machines, Linux; a reservation's price is of its whole term).
/// Rows of other services and systems are passed over, and so are instances that are not among `known`, after counting
/// them in `unknown` (if given). A price below zero or not a number, a date in the future, another currency without its
/// exchange rate, the same price twice with two values: ConfigError with the place.
PriceList read_price_list(const std::filesystem::path& file, const std::vector<std::string>& known,
                          const PriceListOptions& options, std::map<std::string, int>* unknown = nullptr);

/// What merging has done.
struct Merged {
  std::string text;  ///< the platform file with the prices in it
  std::size_t changed = 0, added = 0, same = 0;
};

/// `platform` is the text of a platform file that has all the instances. A listed price takes the place of the one of
/// its instance, region, zone and market, with date and source; all else stays.
Merged merge_prices(std::string_view platform, const PriceList& list);

}  // namespace ganymede
