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
  std::map<std::string, int> unknown;  ///< rows of instances that the platform does not have, by instance
  /// Prices that are not of a whole machine and were passed over: "vms.csv: line 5: a2-highgpu-8g in europe-west4-a:
  /// the list has no price of its 8 x A100 there".
  std::vector<std::string> parts;
  std::string next_page;  ///< where a page says that the list goes on, if its last page is not among the files
};

struct PriceListOptions {
  std::string today;                       ///< YYYY-MM-DD; a later price is an error
  std::string as_of = "undated";           ///< the day on which a list that does not say it was read
  std::map<std::string, double> exchange;  ///< dollars for one unit of another currency, such as "EUR"
};

/// Reads a list in one of these forms, which is recognized by its content:
///  - `ganymede.platform/1`, for its prices;
///  - a CSV with the columns instance, region, market, usd_per_hour, as_of and perhaps zone and source, as
///    `ganymede catalog --format csv` prints;
///  - SkyPilot's vms.csv. Google's machines stand there without their GPUs, which have rows of their own: the price of
///  a
///    machine is the sum of both, where the list has both;
///  - the JSON of AWS's price list of EC2 (Linux, shared tenancy, no software; reserved: standard, no upfront);
///  - the JSON of Azure's retail prices (virtual machines, Linux; a reservation's price is of its whole term), of which
///    a file holds one page. Prices that are not in effect today are skipped. The day since which a price holds is no
///    date of it: a price has held until the list was read.
/// Several files are the pages of one list. Rows of other services and systems are skipped; so are rows of instances
/// that the platform does not have, which are counted. Throws ConfigError with the place for a price that is negative
/// or not a number, a date in the future, a currency without exchange rate, two values for one price, or files of two
/// kinds.
PriceList read_price_list(const std::vector<std::filesystem::path>& files, const Platform& platform,
                          const PriceListOptions& options);

/// The result of merge_prices(), with the number of prices that were changed, added or already the same.
struct Merged {
  std::string text;  ///< the platform file with the prices in it
  std::size_t changed = 0, added = 0, same = 0;
  /// Prices that changed by more than half: "vms.csv: line 2: p3.2xlarge in us-east-1 on-demand: from 3.06 to 0.40".
  std::vector<std::string> jumps;
};

/// Merges the list into the text of a platform file, which must have all its instances. A listed price, with date and
/// source, replaces that of the same instance, region, zone and market; everything else stays.
Merged merge_prices(std::string_view platform, const PriceList& list);

}  // namespace ganymede::platforms
