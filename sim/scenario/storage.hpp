#pragma once
// Where the dataset and the checkpoints of a run are kept, and the path from storage to the GPU.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede::sim {

// How long it takes to turn a stored image into an array, by program and image size.

/// A program that decodes images. Its times are those of one hardware thread (vCPU) of a host whose threads are all
/// busy.
struct Decoder {
  std::string_view name;
  std::string_view summary;  ///< Its work on an image, for people.
  Seconds fixed;             ///< For each image.
  Seconds per_megapixel;     ///< For each 1e6 pixels of the stored image.

  /// The time of one thread for an image of `pixels` pixels.
  Seconds time(double pixels) const { return fixed + per_megapixel * (pixels * 1e-6); }
  /// Images a second that `threads` threads decode.
  double rate(double pixels, double threads) const { return threads / time(pixels).si; }
};

std::vector<std::string> decoder_names();
/// Returns the decoder of a name in decoder_names(), else null.
const Decoder* find_decoder(std::string_view name);

/// How much of a storage class is rented. If each node has its own volume, this is the volume of one node.
struct Volume {
  Bytes size{0};          ///< Size as sold; 0: an object store, or a volume whose size costs nothing.
  double extra_iops = 0;  ///< IOPS provisioned above those that come with the volume.
  double extra_rate = 0;  ///< Throughput above what comes with the volume, in the unit of its price: MB/s or MiB/s.
};

/// The path of images from storage to the GPU.
struct InputPath {
  enum class Cache { memory, disk, none };
  std::optional<platforms::Storage> storage;  ///< None: the dataset is local.
  Volume volume;
  Cache cache = Cache::memory;  ///< It holds the dataset after the first epoch, if it fits.
  int prefetch = 2;             ///< Number of batches that the input pipeline prepares ahead.
  double compressed = 1;        ///< Stored bytes of an image divided by the dataset's `bytes_per_image`.
  Seconds decompress{0};        ///< CPU time to unpack one image.
  double images_per_request = 1;
  const Decoder* decoder = nullptr;  ///< Null: reading a batch takes the host time that the trace has recorded.
};

struct Checkpoints {
  enum class Every { never, interval, images, epochs, daly };
  Every every = Every::never;
  Seconds interval{0};  ///< For Every::interval.
  double count = 0;     ///< For Every::images and Every::epochs.
  Bytes bytes{0};       ///< Size of one checkpoint.
  std::optional<platforms::Storage> storage;
  Volume volume;
  bool on_notice = true;  ///< Writes one more checkpoint before a node under notice leaves, if there is time.
};

}  // namespace ganymede::sim
