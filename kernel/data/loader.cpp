#include "kernel/data/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include "common/random.hpp"

namespace ganymede::kernel {

Loader::Loader(int images, std::size_t image_bytes, ReadImage read, int batch, std::uint64_t seed,
               LoaderOptions options, Shard shard, BesideImages beside)
    : image_bytes_(image_bytes),
      read_(std::move(read)),
      options_(options),
      shard_(shard),
      beside_(std::move(beside)),
      order_(images, batch * shard.ranks, seed),
      slots_(static_cast<std::size_t>(options.prefetch) + 1) {
  for (Slot& slot : slots_) {
    const std::size_t pixels = beside_.other ? 2 * image_bytes : image_bytes;
    slot.bytes.resize(static_cast<std::size_t>(batch) * (pixels + static_cast<std::size_t>(beside_.classes)));
    slot.indices.resize(static_cast<std::size_t>(batch));
  }
  start();
}

Loader::~Loader() { stop(); }

void Loader::start() {
  stop_ = false;
  drawn_ = given_ = 0;
  for (Slot& slot : slots_) slot.ready = false;
  if (options_.prefetch == 0) return;
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

void Loader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Loader::seek(std::int64_t epoch, std::size_t position) {
  stop();
  order_.seek(epoch, position);
  epoch_ = epoch;
  position_ = position;
  start();
}

void Loader::draw(Slot& slot) {
  const std::size_t mine = slot.indices.size();
  const auto indices = order_.next().subspan(mine * static_cast<std::size_t>(shard_.rank), mine);
  std::copy(indices.begin(), indices.end(), slot.indices.begin());
  slot.epoch = order_.epoch();
  slot.position = order_.position();
}

void Loader::fill(Slot& slot) {
  const std::size_t batch = slot.indices.size();
  std::uint8_t* to = slot.bytes.data();
  for (const ReadImage* read : {&read_, &beside_.other})
    for (std::size_t i = 0; *read && i < batch; ++i, to += image_bytes_) (*read)(slot.indices[i], to);
  for (std::size_t i = 0; beside_.classes > 0 && i < batch; ++i, to += beside_.classes) {
    std::fill_n(to, beside_.classes, std::uint8_t{0});
    to[beside_.labels[slot.indices[i]]] = 255;
  }
}

void Loader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // The slot of the batch that next() returned last must not be overwritten, because the caller still reads it.
    wanted_.wait(lock, [&] { return stop_ || drawn_ < given_ + static_cast<std::uint64_t>(options_.prefetch); });
    if (stop_) return;
    Slot& slot = slots_[drawn_++ % slots_.size()];
    draw(slot);
    lock.unlock();
    try {
      fill(slot);
    } catch (...) {
      slot.error = std::current_exception();
    }
    lock.lock();
    slot.ready = true;
    made_.notify_one();
  }
}

std::optional<std::span<const std::uint8_t>> Loader::peek() {
  if (options_.prefetch == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Slot& slot = slots_[given_ % slots_.size()];
  if (!slot.ready || slot.error) return std::nullopt;
  return slot.bytes;
}

std::span<const std::uint8_t> Loader::next() {
  Slot* slot = &slots_.front();
  if (options_.prefetch == 0) {
    draw(*slot);
    fill(*slot);
  } else {
    std::unique_lock lock(mutex_);
    slot = &slots_[given_ % slots_.size()];
    made_.wait(lock, [&] { return slot->ready; });
    slot->ready = false;
    ++given_;
    lock.unlock();
    wanted_.notify_one();
    if (slot->error) std::rethrow_exception(std::exchange(slot->error, nullptr));
  }
  epoch_ = slot->epoch;
  position_ = slot->position;
  return slot->bytes;
}

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
