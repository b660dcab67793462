#pragma once
// The inventory of a machine, for people and as a table.

#include <cstddef>
#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::report {

/// `machine` is a HostInventory as JSON (common/host_inventory.hpp) with the "backends" of the program. The text fits
/// `width` columns.
std::string machine_text(const OrderedJson& machine, std::size_t width);
std::string machine_csv(const OrderedJson& machine);

}  // namespace ganymede::report
