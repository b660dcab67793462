#include "kernel/data/order.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include "common/random.hpp"

namespace ganymede::kernel {

Order::Order(int images, int batch, std::uint64_t seed)
    : batch_(static_cast<std::size_t>(batch)), seed_(seed), order_(static_cast<std::size_t>(images)) {
  assert(batch >= 1 && batch <= images);
  shuffle();
}

void Order::seek(std::int64_t epoch, std::size_t position) {
  assert(epoch >= 1 && position <= order_.size());
  epoch_ = epoch;
  at_ = position;
  shuffle();
}

void Order::shuffle() {
  std::array<char, 48> name{};  // not a std::string, because a step must not allocate
  const auto end = fmt::format_to_n(name.data(), name.size(), "kernel/batches/{}", epoch_).out;
  RandomStream random(seed_, {name.data(), static_cast<std::size_t>(end - name.data())});
  std::iota(order_.begin(), order_.end(), 0U);
  // Fisher-Yates by hand, because the order that std::shuffle gives depends on the standard library.
  for (std::size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random.below(i + 1)]);
}

std::span<const std::uint32_t> Order::next() {
  if (at_ + batch_ > order_.size()) {
    ++epoch_;
    at_ = 0;
    shuffle();
  }
  at_ += batch_;
  return {order_.data() + at_ - batch_, batch_};
}

}  // namespace ganymede::kernel
