#pragma once
// The inventory of a machine, for people and as a table.

#include <cstddef>
#include <string>
#include <vector>

#include "common/host_inventory.hpp"

namespace ganymede::report {

/// The parts of the machine, then for each backend of the program whether it is ready and why. The text fits `width`
/// columns.
std::string machine_text(const HostInventory& machine, const std::vector<HostDependency>& backends, std::size_t width);
std::string machine_csv(const HostInventory& machine, const std::vector<HostDependency>& backends);

}  // namespace ganymede::report
