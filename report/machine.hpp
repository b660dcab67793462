#pragma once
// The inventory of a machine, for people and as a table.

#include <cstddef>
#include <string>
#include <vector>

#include "common/host_inventory.hpp"
#include "documents/machine_checks.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The parts of the machine, then for each backend of the program whether it is ready and why. The text fits `width`
/// columns.
std::string machine_text(const HostInventory& machine, const std::vector<HostDependency>& backends, std::size_t width);
std::string machine_csv(const HostInventory& machine, const std::vector<HostDependency>& backends);

// Which GPUs hold a training, as text and as CSV.

/// The answer, the memory by kind, and a row for each GPU, fitted to `width` columns (table.hpp).
std::string fits_text(const documents::Fits& fits, std::size_t width = kAnyWidth);
/// One row for each GPU.
std::string fits_csv(const documents::Fits& fits);

// Whether measured collectives are normal, as text and as CSV.

/// The verdict, the curve beside the expected one, and the causes.
std::string link_check_text(const documents::LinkCheck& check, std::size_t width = kAnyWidth);
/// One row for each size.
std::string link_check_csv(const documents::LinkCheck& check);

// Why several GPUs are slow, as text.

/// The answer, the parts of a step, and the causes with what mending them brings.
std::string why_slow_text(const documents::WhySlow& answer, std::size_t width = kAnyWidth);

}  // namespace ganymede::report
