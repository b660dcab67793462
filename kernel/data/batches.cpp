#include "kernel/data/batches.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

namespace ganymede::kernel {

Batches::Batches(const Images& images, int batch, std::uint64_t seed)
    : images_(images),
      batch_(static_cast<std::size_t>(batch)),
      image_bytes_(images.pixels.size() / static_cast<std::size_t>(images.count)),
      seed_(seed),
      order_(static_cast<std::size_t>(images.count)),
      staged_(batch_ * image_bytes_) {
  assert(batch >= 1 && batch <= images.count);
  shuffle();
}

void Batches::seek(std::int64_t epoch, std::size_t position) {
  assert(epoch >= 1 && position <= order_.size());
  epoch_ = epoch;
  at_ = position;
  shuffle();
}

void Batches::shuffle() {
  std::array<char, 48> name{};  // a step allocates nothing
  const auto end = fmt::format_to_n(name.data(), name.size(), "kernel/batches/{}", epoch_).out;
  RandomStream random(seed_, {name.data(), static_cast<std::size_t>(end - name.data())});
  std::iota(order_.begin(), order_.end(), 0U);
  // Fisher-Yates; std::shuffle gives other orders with other standard libraries.
  for (std::size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random.below(i + 1)]);
}

std::span<const std::uint8_t> Batches::next() {
  if (at_ + batch_ > order_.size()) {
    ++epoch_;
    at_ = 0;
    shuffle();
  }
  for (std::size_t i = 0; i < batch_; ++i)
    std::memcpy(staged_.data() + i * image_bytes_, images_.pixels.data() + order_[at_ + i] * image_bytes_,
                image_bytes_);
  at_ += batch_;
  return staged_;
}

}  // namespace ganymede::kernel
