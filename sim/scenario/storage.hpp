#pragma once
// Where the dataset and the checkpoints of a run are kept, and the path from storage to the GPU.

#include <cstdint>
#include <optional>

#include "platforms/platform.hpp"
#include "sim/scenario/decoders.hpp"

namespace ganymede::sim {

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
