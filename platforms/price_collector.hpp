#pragma once
// Collects the prices of a list; the readers of all kinds of lists use it.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "common/csv.hpp"
#include "platforms/price_list.hpp"

namespace ganymede::platforms {

/// The number that the whole text states, which may be NaN or infinite; nothing if the text is not a number.
std::optional<double> decimal_number(std::string_view text);

/// Takes the prices of a list one by one. A price of an instance that is not known is only counted.
class PriceCollector {
 public:
  PriceCollector(const Platform& platform, const PriceListOptions& options) : platform_(platform), options_(options) {
    for (const Instance& instance : platform.instances) known_.insert(instance.name);
  }

  const Platform& platform() const { return platform_; }
  const PriceListOptions& options() const { return options_; }
  bool knows(const std::string& instance) const { return known_.contains(instance); }
  /// The next prices are of this file.
  void begin_file(const std::string& name) { source_ = "UPDATE: " + name; }
  /// Counts a row of an instance that is not known.
  void skip(const std::string& instance) { ++list_.unknown[instance]; }
  /// Passes over a price that is not of a whole machine; `what` says of which part, and where it stands.
  void pass_over_part(std::string what) { list_.parts.push_back(std::move(what)); }
  /// Takes note of where a page says that its list goes on; empty: it is the last page.
  void end_page(std::string next);
  /// Takes a price in `currency` per hour; `where` is its place, for messages. Throws ConfigError for a bad price (see
  /// read_price_list).
  void add(const std::string& instance, const std::string& where, std::string region, std::string zone, Market market,
           double per_hour, std::string as_of, const std::string& currency = "USD", std::string notes = "");
  /// The collected list, but for its kind.
  PriceList take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, Market>;
  const Platform& platform_;
  const PriceListOptions& options_;
  std::set<std::string> known_;
  std::string source_;
  PriceList list_;
  bool has_last_page_ = false;
  std::map<Key, std::size_t> index_;
};

// price_list_json.cpp
/// Reads a list of AWS or Azure or a platform file into `out`. Returns the kind of the list.
std::string read_json_prices(std::string_view text, const std::string& file, PriceCollector& out);

// price_list_parts.cpp
/// Reads SkyPilot's vms.csv into `out`.
void read_sky_list(const CsvTable& table, PriceCollector& out);
/// Reads a price from a cell; nothing if the cell is empty.
std::optional<double> price_cell(const CsvTable& table, const CsvTable::Row& row, const char* column);

}  // namespace ganymede::platforms
