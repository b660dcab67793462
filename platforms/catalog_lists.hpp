#pragma once
// The names that catalogs give to what can be rented, with a line about each.

#include <functional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

struct ListedName {
  std::string name, summary;
};

std::vector<ListedName> list_providers();  ///< "35 instance types in 5 regions, prices of 2025-04-04 to 2026-07-20"
std::vector<ListedName> list_markets();
std::vector<ListedName> list_instances();  ///< "aws: 8 x A100-40GB, 96 vCPUs; 4 regions, on demand from 32.77 USD/h"
std::vector<ListedName> list_regions();    ///< "aws: 21 instance types, 400 g/kWh"

/// Calls `visit` with each catalog and each of its instances that can be rented.
void for_each_instance(const std::function<void(const Platform&, const Instance&)>& visit);

/// A commented platform file of one's own, whose only machines are built like that instance type. What they cost is a
/// placeholder, which the comment says. Throws ConfigError if no catalog has the instance type.
std::string machines_like(const std::string& instance);

/// Price lists as `ganymede catalog --update` merges them into a catalog.
struct CatalogUpdate {
  std::string catalog;                ///< a provider, or a platform file
  std::vector<std::string> list;      ///< the files of a price list (price_list.hpp)
  std::string today, as_of;           ///< YYYY-MM-DD; as_of "": as the list says, or the day of its oldest file
  std::string region;                 ///< of the prices of a list that does not say it
  std::vector<std::string> exchange;  ///< dollars for one unit of another currency: "EUR=1.08"
};

struct UpdatedCatalog {
  std::string text;                  ///< the platform file with the prices in it
  std::vector<std::string> remarks;  ///< for people: how many prices changed, and which to look at
};

/// Throws ConfigError for an exchange rate that is none, and for what read_price_list() refuses.
UpdatedCatalog update_catalog(const CatalogUpdate& update);

}  // namespace ganymede::platforms
