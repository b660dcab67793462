#pragma once
// Where training images come from: the built-in glyphs, or a directory of MNIST's files, CIFAR-10's, or pictures.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/data/images.hpp"
#include "kernel/data/picture_store.hpp"
#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Dataset {
  std::string name;                       ///< "builtin" or the directory
  Images images;                          ///< of picture files without pixels until they are all wanted
  std::vector<std::uint8_t> labels = {};  ///< empty when there is no file of them
  std::shared_ptr<const PictureStore> pictures = {};

  /// Image `index` to `out`, by any thread.
  void read(std::uint32_t index, std::uint8_t* out) const;
  /// Decodes what is not decoded.
  void need_all();
  /// Another data set has another.
  std::uint64_t fingerprint() const;
};

/// Of picture files: decoded when they are first asked for, or now; and then kept, or decoded every time.
struct PictureReading {
  bool now = true;
  bool cached = true;
};

inline constexpr const char* kBuiltinDataset = "builtin";

/// Images, or clips, of `shape`. "builtin" draws them. A directory holds, in this order of preference:
/// - train-images-idx3-ubyte (or train-images.idx3-ubyte; either with .gz) and perhaps its labels;
/// - data_batch_1.bin to data_batch_5.bin of CIFAR-10, as many as there are;
/// - for clips, folders of frames (as UCF101 is unpacked): see clips.hpp;
/// - PNG and JPEG files, at any depth, which are resized and cropped to `shape`.
/// ConfigError when nothing of these is there, a file is damaged, labels and images differ in number, or the files'
/// images are of another shape.
Dataset open_dataset(const std::string& name, ImageShape shape, PictureReading pictures = {});

/// The shape that a directory's files say by themselves (IDX and CIFAR-10); nullopt for the built-in set, pictures, and
/// what open_dataset will refuse.
std::optional<ImageShape> image_of_dataset(const std::string& name);

/// Where the built-in set is kept: $XDG_CACHE_HOME/ganymede, else ~/.cache/ganymede, else the directory for temporary
/// files.
std::filesystem::path cache_directory();

/// Draws the built-in set of a shape into files below `cache` unless they are there; returns their directory.
std::filesystem::path write_builtin_dataset(const std::filesystem::path& cache, ImageShape shape);

}  // namespace ganymede::kernel
