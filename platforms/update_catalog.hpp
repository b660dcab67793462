#pragma once
// Price lists as `ganymede catalog --update` merges them into a catalog.

#include <string>
#include <vector>

namespace ganymede::platforms {

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
