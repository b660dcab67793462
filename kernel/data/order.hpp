#pragma once
// Decides which images make which batch. In an epoch every image occurs at most once, in a random order that depends on
// seed and epoch only.

#include <cstdint>
#include <span>
#include <vector>

namespace ganymede::kernel {

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

}  // namespace ganymede::kernel
