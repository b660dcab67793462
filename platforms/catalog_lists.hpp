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

}  // namespace ganymede::platforms
