#include "common/module.hpp"

#include <fmt/format.h>

#include <system_error>

namespace ganymede {

std::filesystem::path module_file(std::string_view name) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return program.parent_path().parent_path() / "lib" / "ganymede" / fmt::format("libganymede_{}.so", name);
}

}  // namespace ganymede
