#pragma once
// Which images make which batch: every image at most once an epoch, in an order that depends on seed and epoch alone.

#include <cstdint>
#include <span>
#include <vector>

namespace ganymede::kernel {

class Order {
 public:
  Order(int images, int batch, std::uint64_t seed);

  /// The next batch's images, valid until the next call. Images left over at the end of an epoch are skipped, as
  /// PyTorch's drop_last does: the order is another one next time. Allocates nothing.
  std::span<const std::uint32_t> next();

  std::int64_t epoch() const { return epoch_; }  ///< from 1
  /// How many images of the epoch were given.
  std::size_t position() const { return at_; }
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
