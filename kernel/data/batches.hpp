#pragma once
// Batches of a data set, in a new random order every epoch.

#include <cstdint>
#include <span>
#include <vector>

#include "common/random.hpp"
#include "kernel/data/images.hpp"

namespace ganymede::kernel {

class Batches {
 public:
  /// `images` must outlive it and hold at least `batch` images.
  Batches(const Images& images, int batch, std::uint64_t seed);

  /// The next batch's bytes, [batch x pixels], valid until the next call. Images left over at the end of an epoch are
  /// skipped, as PyTorch's drop_last does: the order is another one next time. Allocates nothing.
  std::span<const std::uint8_t> next();

  /// Which images the last batch had.
  std::span<const std::uint32_t> indices() const { return {order_.data() + at_ - batch_, batch_}; }

  std::int64_t epoch() const { return epoch_; }  ///< from 1

  /// How many images of the epoch were given.
  std::size_t position() const { return at_; }
  /// Goes on from there. An epoch's order depends on seed and epoch alone.
  void seek(std::int64_t epoch, std::size_t position);

 private:
  void shuffle();

  const Images& images_;
  std::size_t batch_, image_bytes_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> staged_;
  std::size_t at_ = 0;
  std::int64_t epoch_ = 1;
};

}  // namespace ganymede::kernel
