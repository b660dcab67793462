#pragma once
// Makes batches of images: threads fill a bounded queue while the device computes earlier steps.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

// Decides which images make which batch. In an epoch every image occurs at most once, in a random order that depends on
// seed and epoch only.

class Order {
 public:
  /// Draws batches of `batch` indices below `images`; 1 <= batch <= images.
  Order(int images, int batch, std::uint64_t seed);

  /// Indices of the next batch's images, valid until the next call. Images left over at the end of an epoch are
  /// skipped, as with PyTorch's drop_last; others are left over in the next epoch. Allocates nothing.
  std::span<const std::uint32_t> next();

  std::int64_t epoch() const { return epoch_; }  ///< from 1
  /// Number of the epoch's images that were returned.
  std::size_t position() const { return at_; }
  /// next() continues after the first `position` images of this epoch.
  void seek(std::int64_t epoch, std::size_t position);

 private:
  void shuffle();

  std::size_t batch_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> order_;
  std::size_t at_ = 0;
  std::int64_t epoch_ = 1;
};

struct LoaderOptions {
  int prefetch = 4;  ///< batches made ahead; 0: the caller's thread makes each one when it asks for it
  int threads = 1;   ///< threads that make batches
};

/// Writes image `index` to `out`. A loader's threads call it at once. If it throws, Loader::next() throws the same for
/// that batch.
using ReadImage = std::function<void(std::uint32_t index, std::uint8_t* out)>;

/// Data of a batch beside its images.
struct BesideImages {
  std::span<const std::uint8_t> labels = {};  ///< a class for each image, below `classes`
  int classes = 0;                            ///< 0: the batches have no labels
  ReadImage other = {};                       ///< an image of a second domain, as large as the first; null: none
};

class Loader {
 public:
  /// Draws batches of `batch` images out of `images`, of `image_bytes` bytes each. With several processes all draw the
  /// same global batches of ranks x `batch` images, and each loads its shard's part.
  Loader(int images, std::size_t image_bytes, ReadImage read, int batch, std::uint64_t seed, LoaderOptions options,
         Shard shard = {}, BesideImages beside = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch's bytes, [batch x image], then [batch x image] of the second domain if there is one, and [batch x
  /// classes]: 255 at an image's class, else 0. They are valid until the next call. Waits until the batch is made.
  /// Allocates nothing.
  std::span<const std::uint8_t> next();

  /// The bytes that next() will return, if that batch is already made; valid until next() has been called twice. Always
  /// nothing with prefetch 0.
  std::optional<std::span<const std::uint8_t>> peek();

  // The position in the data after the batch that next() returned last.
  std::int64_t epoch() const { return epoch_; }         ///< from 1
  std::size_t position() const { return position_; }    ///< number of the epoch's images that were returned
  void seek(std::int64_t epoch, std::size_t position);  ///< next() continues from there

 private:
  /// One batch of the queue.
  struct Slot {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint32_t> indices;
    std::int64_t epoch = 1;
    std::size_t position = 0;
    bool ready = false;
    std::exception_ptr error;
  };

  void start();
  void stop();
  void work();
  void draw(Slot& slot);
  void fill(Slot& slot);

  std::size_t image_bytes_;
  ReadImage read_;
  LoaderOptions options_;
  Shard shard_;
  BesideImages beside_;
  Order order_;
  std::int64_t epoch_ = 1;
  std::size_t position_ = 0;

  std::vector<Slot> slots_;  // one more than `prefetch`: the caller still reads the last one
  std::mutex mutex_;
  std::condition_variable made_, wanted_;
  std::uint64_t drawn_ = 0, given_ = 0;  // batches that threads have begun, and that next() has returned
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ganymede::kernel
