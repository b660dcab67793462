#pragma once
// Reads files that may be gzipped, as MNIST's are.

#include <filesystem>
#include <string>

namespace ganymede::kernel {

/// The file's bytes, inflated if it begins with gzip's magic number. Throws ConfigError if it cannot be read, is
/// damaged or cut short, or inflates to more than 64 MiB and 100 times its size, or to more than 4 GiB.
std::string read_maybe_gzip(const std::filesystem::path& file);

}  // namespace ganymede::kernel
