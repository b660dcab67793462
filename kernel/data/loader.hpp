#pragma once
// Batches of images: threads fill a bounded queue of them while the steps before are computed.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "kernel/data/order.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

struct LoaderOptions {
  int prefetch = 4;  ///< batches made ahead; 0: each when it is asked for, by the caller's thread
  int threads = 1;   ///< that make them
};

class Loader {
 public:
  /// Writes image `index` to `out`; called by several threads at once. May throw: `next` throws it in its turn.
  using Read = std::function<void(std::uint32_t index, std::uint8_t* out)>;

  /// Of `images` images, of `image_bytes` each.
  /// Batches of `batch` images: the shard's part of larger ones, of which all processes draw the same.
  Loader(int images, std::size_t image_bytes, Read read, int batch, std::uint64_t seed, LoaderOptions options,
         Shard shard = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch's bytes, [batch x image], valid until the next call; waits until they are there. Allocates nothing.
  std::span<const std::uint8_t> next();

  /// What `next` will give, if it is there already; valid until the call after that. Not with prefetch 0.
  std::optional<std::span<const std::uint8_t>> peek();

  // Of the batch that `next` gave last.
  std::int64_t epoch() const { return epoch_; }         ///< from 1
  std::size_t position() const { return position_; }    ///< how many images of the epoch were given
  void seek(std::int64_t epoch, std::size_t position);  ///< `next` goes on from there

 private:
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
  Read read_;
  LoaderOptions options_;
  Shard shard_;
  Order order_;
  std::int64_t epoch_ = 1;
  std::size_t position_ = 0;

  std::vector<Slot> slots_;  // one more than are made ahead: the caller's
  std::mutex mutex_;
  std::condition_variable made_, wanted_;
  std::uint64_t drawn_ = 0, given_ = 0;  // batches
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ganymede::kernel
