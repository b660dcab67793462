#include "kernel/data/batches.hpp"

#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

namespace ganymede::kernel {

Batches::Batches(const Images& images, int batch, std::uint64_t seed)
    : images_(images),
      batch_(static_cast<std::size_t>(batch)),
      image_bytes_(images.pixels.size() / static_cast<std::size_t>(images.count)),
      random_(seed, "kernel/batches"),
      order_(static_cast<std::size_t>(images.count)),
      staged_(batch_ * image_bytes_) {
  assert(batch >= 1 && batch <= images.count);
  std::iota(order_.begin(), order_.end(), 0U);
  shuffle();
}

void Batches::shuffle() {
  // Fisher-Yates; std::shuffle gives other orders with other standard libraries.
  for (std::size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random_.below(i + 1)]);
}

std::span<const std::uint8_t> Batches::next() {
  if (at_ + batch_ > order_.size()) {
    shuffle();
    at_ = 0;
    ++epoch_;
  }
  for (std::size_t i = 0; i < batch_; ++i)
    std::memcpy(staged_.data() + i * image_bytes_, images_.pixels.data() + order_[at_ + i] * image_bytes_,
                image_bytes_);
  at_ += batch_;
  return staged_;
}

}  // namespace ganymede::kernel
