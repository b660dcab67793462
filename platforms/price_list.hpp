#pragma once
// Reads price lists as providers and tools publish them, and merges them into a platform file.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
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

/// An instance that a list describes and the catalog does not have.
struct NewInstance {
  int gpus = 0;           ///< 0: it has none, or a part of one
  double gpu_memory = 0;  ///< of one, in GiB; 0: not stated
  int vcpus = 0;          ///< 0: not stated
  double memory = 0;      ///< of the host, in GiB; 0: not stated
  std::string gpu = {};   ///< a name in Platform::gpus
  bool relative = false;  ///< the catalog has another size of its family
};

struct PriceList {
  std::string kind;  ///< "SkyPilot catalog", "AWS price list", "Azure retail prices", "platform file", "price table", …
  std::vector<ListedPrice> prices;
  std::map<std::string, NewInstance> fresh;  ///< instances that the list adds, each with a price in `prices`
  std::map<std::string, int> unknown;        ///< rows of instances that the platform does not have, by instance
  /// Prices that are not of a whole machine and were passed over: "vms.csv: line 5: a2-highgpu-8g in europe-west4-a:
  /// the list has no price of its 8 x A100 there".
  std::vector<std::string> parts;
  /// For each GPU of a new instance without a data sheet in the platform: "vms.csv: line 5: g7.xlarge has 1 x L50".
  std::map<std::string, std::string> no_sheet;
  bool undated = false;  ///< it has prices to which it gives no date; they have PriceListOptions::as_of
};

struct PriceListOptions {
  std::string today;                       ///< YYYY-MM-DD; a later price is an error
  std::string as_of = "undated";           ///< the day on which a list that does not say it was read
  std::map<std::string, double> exchange;  ///< dollars for one unit of another currency, such as "EUR"
  std::string region = {};                 ///< of the prices of a list that does not say it
};

/// Reads a list in one of these forms, which is recognized by its content:
///  - `ganymede.platform/1`, for its prices;
///  - a CSV with the columns instance, region, market, usd_per_hour, as_of and perhaps zone and source, as
///    `ganymede catalog --format csv` prints;
///  - SkyPilot's vms.csv. Google's machines stand there without their GPUs, which have rows of their own: the price of
///    a machine is the sum of both, where the list has both;
///  - AWS's price list of EC2 as JSON or CSV, and what `aws pricing get-products` prints (Linux, shared tenancy, no
///    software; reserved: standard, no upfront);
///  - what `aws ec2 describe-spot-price-history` prints: the last price of each zone, and the lowest of them for the
///    region;
///  - the JSON of Azure's retail prices (virtual machines, Linux; a reservation's price is of its whole term), of which
///    a file holds one page. Prices that are not in effect today are skipped. The day since which a price holds is no
///    date of it: a price has held until the list was read;
///  - SKUs of Google's Cloud Billing catalog: a machine costs what its vCPUs, memory, GPUs and disks cost, where
///    the list has all of them;
///  - the instances.json of ec2instances.info (Vantage), and Infracost's breakdown of a Terraform project, which does
///    not say its region;
///  - offers of Vast.ai: the price is the median of the hosts' offers, which is unconfirmed, with their spread and
///    reliability; and RunPod's gpuTypes.
/// Several files are the pages of one list. Rows of other services and systems are skipped; so are rows of instances
/// that the platform does not have, which are counted, unless the list describes them, the platform has the data sheet
/// of their GPU, and the list has others of the platform's instances or theirs are of one family. 0 is a price in our
/// own forms only. Throws ConfigError with the place for a price that is negative, not a number or absurd (check.hpp),
/// a date in the future, a currency without exchange rate or two currencies, two values for one price, pages that are
/// not among the files, or files of two kinds.
PriceList read_price_list(const std::vector<std::filesystem::path>& files, const Platform& platform,
                          const PriceListOptions& options);

/// The result of merge_prices(), with the number of prices that were changed, added or already the same.
struct Merged {
  std::string text;  ///< the platform file with the prices in it
  std::size_t changed = 0, added = 0, same = 0;
  /// Prices that changed by more than half: "vms.csv: line 2: p3.2xlarge in us-east-1 on-demand: from 3.06 to 0.40".
  std::vector<std::string> jumps;
};

/// Merges the list into the text of a platform file, which must have all its instances but the new ones. These get the
/// links of another instance with the same GPUs, which they state, and no NIC. A listed price, with date and
/// source, replaces that of the same instance, region, zone and market; everything else stays.
Merged merge_prices(std::string_view platform, const PriceList& list);

/// The day on which the file was last written, in UTC; nothing if it cannot be told, which who reads the file says.
std::optional<std::string> day_written(const std::filesystem::path& file);

}  // namespace ganymede::platforms
