#pragma once
// Modules: parts of the program that it loads when it first needs them, because they bring libraries that a machine may
// lack or that take long to load.

#include <filesystem>
#include <string_view>

namespace ganymede {

/// Where the module of that name is, seen from the running program: in ../lib/ganymede, built or installed; from where
/// packages install the program if /proc is not mounted.
std::filesystem::path module_file(std::string_view name);

}  // namespace ganymede
