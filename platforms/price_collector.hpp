#pragma once
// Collects the prices of a list; the readers of all kinds of lists use it.

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "common/csv.hpp"
#include "common/json_fwd.hpp"
#include "platforms/price_list.hpp"

namespace ganymede::platforms {

/// The number that the whole text states, which may be NaN or infinite; nothing if the text is not a number.
std::optional<double> decimal_number(std::string_view text);

/// Takes the prices of a list one by one. A price of an instance that is not known is only counted.
class PriceCollector {
 public:
  PriceCollector(const Platform& platform, const PriceListOptions& options) : platform_(platform), options_(options) {
    for (const Instance& instance : platform.instances) known_.emplace(instance.name, instance.gpus);
  }

  const Platform& platform() const { return platform_; }
  const PriceListOptions& options() const { return options_; }
  bool knows(const std::string& instance) const { return known_.contains(instance); }
  /// The next prices are of this file.
  void begin_file(const std::string& name) { source_ = "UPDATE: " + name; }
  /// Counts a row of an instance that is not known.
  void skip(const std::string& instance) { ++list_.unknown[instance]; }
  /// The GPU that a list calls `name`, of so many GiB if it says that; nullptr if the platform has none.
  const Gpu* sheet(const std::string& name, double memory) const;
  /// Makes an instance known that the catalog does not have, if it has the GPU; `gpu` is the list's name of it. `where`
  /// is the place, for messages.
  void describe(const std::string& instance, const std::string& where, const std::string& gpu, NewInstance facts);
  /// Passes over a price that is not of a whole machine; `what` says of which part, and where it stands.
  void pass_over_part(std::string what) { list_.parts.push_back(std::move(what)); }
  /// Takes note of where a page says that its list goes on; empty: it is the last page.
  void end_page(const std::string& next);
  /// Takes a price in `currency` per hour; `where` is its place, for messages, and `as_of` its date or empty if the
  /// list does not say it. Throws ConfigError for a bad price (see read_price_list).
  void add(const std::string& instance, const std::string& where, std::string region, std::string zone, Market market,
           double per_hour, std::string as_of, const std::string& currency = "USD", std::string notes = "");
  /// The same for a list in which 0 is no price.
  void add_rented(const std::string& instance, const std::string& where, std::string region, std::string zone,
                  Market market, double per_hour, std::string as_of, const std::string& currency = "USD",
                  std::string notes = "");
  /// Says of the last price why it must not be trusted yet.
  void doubt_last(std::string why) { list_.prices.back().price.origin.unconfirmed = std::move(why); }
  /// Says of the last price, in dollars, that 19 in 20 offers ask between these.
  void spread_last(double low, double high) {
    list_.prices.back().price.spread = {{std::llround(low * 1e6)}, {std::llround(high * 1e6)}};
  }
  /// A spot price of a zone, in dollars.
  struct ZonePrice {
    double per_hour = 0;
    std::string where;
    std::string since;  ///< a time in UTC as text
  };
  /// Takes the spot price of a zone; of several, the last one counts. The lowest one of its zones is a region's.
  void add_zone(const std::string& instance, const std::string& region, const std::string& zone, ZonePrice price);
  /// The collected list, but for its kind. Throws ConfigError if it has pages that are not among its files.
  PriceList take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, Market>;
  void take_zones();
  double dollars(double amount, const std::string& currency, const std::string& instance, const std::string& where);

  const Platform& platform_;
  const PriceListOptions& options_;
  std::map<std::string, int> known_;  ///< number of GPUs of each instance
  std::string source_, currency_;
  PriceList list_;
  int last_pages_ = 0;
  std::vector<std::string> next_pages_;
  std::map<Key, std::size_t> index_;
  std::map<std::tuple<std::string, std::string, std::string>, ZonePrice> zones_;  ///< by instance, region and zone
};

/// A part of a list in JSON.
using Listed = Json;

/// The text of a member; empty if it is absent or no text.
std::string text_of(const Listed& object, const char* key);
/// A number, or a text that states one; NaN for anything else.
double number_of(const Listed& object, const char* key);
/// The member if it is an object or array, else an empty object.
const Listed& part_of(const Listed& object, std::string_view key);

// price_list_json.cpp
/// Reads a list in JSON into `out`. Returns the kind of the list.
std::string read_json_prices(const std::filesystem::path& file, PriceCollector& out);

// price_list_aws.cpp
/// True for a product of AWS's list that is a plain machine under Linux.
bool is_plain_machine(const Listed& attributes);
void read_aws_list(const Listed& list, const std::string& file, PriceCollector& out);
void read_aws_products(const Listed& products, const std::string& file, PriceCollector& out);
void read_aws_spot_history(const Listed& history, const std::string& file, PriceCollector& out);
/// Reads AWS's list as CSV, line by line: it may be larger than the memory.
void read_aws_csv(const std::filesystem::path& file, PriceCollector& out);

// price_list_tools.cpp
/// The instances of ec2instances.info, and Infracost's breakdown of a Terraform project.
void read_vantage(const Listed& list, const std::string& file, PriceCollector& out);
void read_infracost(const Listed& list, const std::string& file, PriceCollector& out);

// price_list_market.cpp
/// Offers of Vast.ai, as `vastai search offers --raw` prints them, and RunPod's `gpuTypes`.
void read_vast_offers(const Listed& offers, const std::string& file, PriceCollector& out);
void read_runpod_gpus(const Listed& gpus, const std::string& file, PriceCollector& out);

// price_list_google.cpp
/// False for SKUs of other things than vCPUs, memory, GPUs and local disks on demand or on spot.
bool is_machine_sku(const Listed& sku);
/// Reads SKUs of Google's Cloud Billing catalog, which price vCPUs, memory, GPUs and disks.
void read_google_skus(const Listed& skus, const std::string& file, PriceCollector& out);

/// How lists name the GPUs of one of Google's machines.
struct GoogleMachine {
  std::string host;      ///< "n1-standard-8" of "n1-standard-8+1xV100"
  std::string sky_gpu;   ///< SkyPilot's name: "A100-80GB"
  std::string sku_gpu;   ///< of the SKU: "A100 80GB"; empty: not known
  std::string series;    ///< of its vCPUs and memory: "A2"; empty: not known
  double local_ssd = 0;  ///< GiB that always belong to it
};
GoogleMachine google_machine(const Instance& instance, const Gpu& gpu);
/// SkyPilot's name of the GPUs that a machine of this name always has ("A100" of "a2-highgpu-8g"); empty: none.
std::string_view google_gpu(std::string_view host);
/// GiB of local disk for each GPU that always belong to a machine of this name.
double google_local_ssd(std::string_view host);
/// True if such GPUs come with machines of their own and are not attached to others.
bool has_google_hosts(std::string_view sky_gpu);

/// Reads SkyPilot's vms.csv into `out`.
void read_sky_list(const CsvTable& table, PriceCollector& out);
/// Reads a price from a cell; nothing if the cell is empty.
std::optional<double> price_cell(const CsvTable& table, const CsvTable::Row& row, const char* column);

}  // namespace ganymede::platforms
