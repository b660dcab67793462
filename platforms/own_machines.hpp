#pragma once
// A platform file to start from, with the hardware of an instance type of the catalogs.

#include <string>

namespace ganymede::platforms {

/// A commented platform file of one's own, whose only machines are built like that instance type. What they cost is a
/// placeholder, which the comment says. Throws ConfigError if no catalog has the instance type.
std::string machines_like(const std::string& instance);

}  // namespace ganymede::platforms
