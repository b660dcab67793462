#pragma once
// What `ganymede catalog` lists: instances at their prices, selected, sorted and as table, CSV or JSON.

#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::cli {

// The keys of --sort.
inline constexpr const char* kByGpuHour = "usd-per-gpu-hour";
inline constexpr const char* kByHour = "usd-per-hour";

struct CatalogOptions {
  std::vector<std::string> providers;                          ///< names or platform files
  std::vector<std::string> gpus, regions, markets, instances;  ///< empty: all
  std::string today, as_of;
  std::vector<std::string> update;  ///< the pages of one list
  std::string sort;                 ///< kByGpuHour or kByHour; empty: in the order of the catalogs
  std::vector<std::string> exchange;
  bool check = false, zones = false;
};

/// An instance at one of its prices.
struct Offer {
  const platforms::Platform* platform;
  const platforms::Instance* instance;
  const platforms::Price* price;  ///< nullptr: the instance has no price
};

/// The offers that the options select, sorted as they ask. Throws ConfigError, with the known names, for a name that is
/// not in the catalogs.
std::vector<Offer> selected_offers(const std::vector<platforms::Platform>& platforms, const CatalogOptions& options);

/// A table with one row for each instance and place, and its markets side by side.
std::string offers_table(const std::vector<Offer>& offers, const CatalogOptions& options, std::size_t width);
std::string offers_csv(const std::vector<Offer>& offers);
std::string offers_json(const std::vector<Offer>& offers, const std::string& today);

}  // namespace ganymede::cli
