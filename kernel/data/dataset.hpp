#pragma once
// Where training images come from: the built-in glyphs or a directory of MNIST-format files. Both go through the same
// reader.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel/data/idx.hpp"

namespace ganymede::kernel {

struct Dataset {
  std::string name;  ///< "builtin" or the directory
  IdxImages images;
  std::vector<std::uint8_t> labels;  ///< empty when there is no file of them
};

inline constexpr const char* kBuiltinDataset = "builtin";

/// "builtin", or a directory with train-images-idx3-ubyte (or train-images.idx3-ubyte) and perhaps its labels.
/// ConfigError when a file is missing or damaged, or labels and images differ in number.
Dataset open_dataset(const std::string& name);

/// Where the built-in set is kept: $XDG_CACHE_HOME/ganymede, else ~/.cache/ganymede, else the directory for temporary
/// files.
std::filesystem::path cache_directory();

/// Draws the built-in set into files below `cache` unless they are there; returns their directory.
std::filesystem::path write_builtin_dataset(const std::filesystem::path& cache);

}  // namespace ganymede::kernel
