#include "common/module.hpp"

#include <fmt/format.h>

#include <system_error>

namespace ganymede {

std::filesystem::path module_file(std::string_view name) {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // Where /proc is not mounted; a relative path would take whatever the working folder has.
  if (error) program = "/usr/bin/ganymede";
  return program.parent_path().parent_path() / "lib" / "ganymede" / fmt::format("libganymede_{}.so", name);
}

}  // namespace ganymede
