#pragma once
// Where training images come from: the built-in glyphs, or a directory with MNIST's files, CIFAR-10's, or pictures.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/data/picture.hpp"
#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Dataset {
  std::string name;                       ///< "builtin" or the directory
  Images images;                          ///< pixels are empty for picture files until decode_all()
  std::vector<std::uint8_t> labels = {};  ///< empty if the data set has none
  std::shared_ptr<const PictureStore> pictures = {};
  /// The images of a second domain (see open_domains); null if there is none.
  std::shared_ptr<Dataset> other = {};

  /// Images in the larger domain. The smaller one's are used more than once in an epoch.
  int count() const { return other ? std::max(images.count, other->images.count) : images.count; }
  /// Writes image `index`, of images.shape().pixels() bytes, to `out`; behind the last image the first follows. Any
  /// thread may call it. Throws ConfigError with the file if it is a damaged picture.
  void read(std::uint32_t index, std::uint8_t* out) const;
  /// Decodes all picture files into `images.pixels`; does nothing if that was done. Throws ConfigError with the file if
  /// one is damaged.
  void decode_all();
  /// A hash that tells data sets apart: of the pixels, or for picture files of their names and sizes; with the labels,
  /// if a training uses them.
  std::uint64_t fingerprint(bool with_labels = false) const;
};

/// When picture files are decoded.
struct PictureReading {
  bool now = true;     ///< all of them when the data set is opened; else each when it is first read
  bool cached = true;  ///< keeps decoded pictures; else they are decoded at every read
};

inline constexpr const char* kBuiltinDataset = "builtin";

/// Opens a data set of images, or clips, of `shape`. "builtin" is drawn by code (see glyphs.hpp). In a directory the
/// first of these that is there is read:
/// - train-images-idx3-ubyte (or train-images.idx3-ubyte; either with .gz) and perhaps its labels;
/// - data_batch_1.bin to data_batch_5.bin of CIFAR-10, as many as there are;
/// - for clips, folders of frames (as UCF101 is unpacked): see below;
/// - PNG and JPEG files, at any depth, which are resized and cropped to `shape`.
/// Throws ConfigError if the directory has none of these, a file is damaged, labels and images differ in number, or the
/// images have another shape.
Dataset open_dataset(const std::string& name, ImageShape shape, PictureReading pictures = {});

/// Opens images of two domains, of which no pairs are known: `A` and `B`, or `trainA` and `trainB`, in a directory,
/// each read as open_dataset() does; domain B is Dataset::other. "builtin" is the first half of the built-in images as
/// they are and the second half in negative. Throws ConfigError if the directory has neither two folders.
Dataset open_domains(const std::string& name, ImageShape shape, PictureReading pictures = {});

/// Throws ConfigError unless each image has one of these classes, from which `model` learns.
void check_labels(const Dataset& dataset, int classes, const std::string& model);

/// The image shape that a directory's files state themselves (IDX and CIFAR-10). Returns nothing for the built-in set,
/// for pictures and if there is no such directory. Throws ConfigError if the IDX file is damaged.
std::optional<ImageShape> image_of_dataset(const std::string& name);

/// The folder that keeps the built-in set: $XDG_CACHE_HOME/ganymede, else ~/.cache/ganymede, else ganymede-UID in the
/// system's folder for temporary files. Throws ConfigError if that one is not this user's alone.
std::filesystem::path cache_directory();

/// Draws the built-in set for `shape` into files below `cache`, unless they are there already; returns their directory.
std::filesystem::path write_builtin_dataset(const std::filesystem::path& cache, ImageShape shape);

// Short video clips: from folders of frames, or made by moving images.

/// Lists the files of all clips of `frames` frames, clip after clip. Every folder that holds PNG or JPEG files, from
/// `directory` down to any depth, is a video; the files are its frames, in the order of their names (UCF101:
/// class/video/frame). A video is cut into consecutive clips; for example one of 20 frames gives two clips of 8, and 4
/// frames are skipped. Throws ConfigError if the directory does not exist or no video is long enough.
std::vector<std::filesystem::path> clip_files(const std::filesystem::path& directory, int frames);

/// Makes `count` clips of the images, used in turn. In each clip the image glides at a constant random speed, and what
/// leaves at one edge comes back at the other.
Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames);

}  // namespace ganymede::kernel
