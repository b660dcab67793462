#pragma once
// Where training images come from: the built-in glyphs, or a directory of MNIST's files, CIFAR-10's, or pictures.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/data/images.hpp"
#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Dataset {
  std::string name;  ///< "builtin" or the directory
  Images images;
  std::vector<std::uint8_t> labels;  ///< empty when there is no file of them
};

inline constexpr const char* kBuiltinDataset = "builtin";

/// Images, or clips, of `shape`. "builtin" draws them. A directory holds, in this order of preference:
/// - train-images-idx3-ubyte (or train-images.idx3-ubyte; either with .gz) and perhaps its labels;
/// - data_batch_1.bin to data_batch_5.bin of CIFAR-10, as many as there are;
/// - for clips, folders of frames (as UCF101 is unpacked): see clips.hpp;
/// - PNG and JPEG files, at any depth, which are resized and cropped to `shape` by as many threads as there are cores.
/// ConfigError when nothing of these is there, a file is damaged, labels and images differ in number, or the files'
/// images are of another shape.
Dataset open_dataset(const std::string& name, ImageShape shape);

/// The shape that a directory's files say by themselves (IDX and CIFAR-10); nullopt for the built-in set, pictures, and
/// what open_dataset will refuse.
std::optional<ImageShape> image_of_dataset(const std::string& name);

/// Where the built-in set is kept: $XDG_CACHE_HOME/ganymede, else ~/.cache/ganymede, else the directory for temporary
/// files.
std::filesystem::path cache_directory();

/// Draws the built-in set of a shape into files below `cache` unless they are there; returns their directory.
std::filesystem::path write_builtin_dataset(const std::filesystem::path& cache, ImageShape shape);

}  // namespace ganymede::kernel
