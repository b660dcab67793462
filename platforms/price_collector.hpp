#pragma once
// Collects the prices of a list; the readers of all kinds of lists use it.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "platforms/price_list.hpp"

namespace ganymede::platforms {

/// The number that the whole text states, which may be NaN or infinite; nothing if the text is not a number.
std::optional<double> decimal_number(std::string_view text);

/// Takes the prices of a list one by one. A price of an instance that is not known is only counted.
class PriceCollector {
 public:
  PriceCollector(const std::vector<std::string>& known, const PriceListOptions& options, std::string source)
      : known_(known.begin(), known.end()), options_(options), source_(std::move(source)) {}

  bool knows(const std::string& instance) const { return known_.contains(instance); }
  /// Counts a row of an instance that is not known.
  void skip(const std::string& instance) { ++unknown_[instance]; }
  /// Takes a price in `currency` per hour; `where` is its place, for messages. Throws ConfigError for a bad price (see
  /// read_price_list).
  void add(const std::string& instance, const std::string& where, std::string region, std::string zone, Market market,
           double per_hour, std::string as_of, const std::string& currency);
  const std::map<std::string, int>& unknown() const { return unknown_; }
  std::vector<ListedPrice> take() { return std::move(prices_); }

 private:
  using Key = std::tuple<std::string, std::string, std::string, Market>;
  std::set<std::string> known_;
  const PriceListOptions& options_;
  std::string source_;
  std::vector<ListedPrice> prices_;
  std::map<Key, std::size_t> index_;
  std::map<std::string, int> unknown_;
};

// price_list_json.cpp
/// Reads a list of AWS or Azure or a platform file into `out`. Returns the kind of the list.
std::string read_json_prices(std::string_view text, const std::string& file, const PriceListOptions& options,
                             PriceCollector& out);

}  // namespace ganymede::platforms
