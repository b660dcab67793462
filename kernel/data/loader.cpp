#include "kernel/data/loader.hpp"

#include <algorithm>
#include <utility>

namespace ganymede::kernel {

Loader::Loader(int images, std::size_t image_bytes, Read read, int batch, std::uint64_t seed, LoaderOptions options,
               Shard shard)
    : image_bytes_(image_bytes),
      read_(std::move(read)),
      options_(options),
      shard_(shard),
      order_(images, batch * shard.ranks, seed),
      slots_(static_cast<std::size_t>(options.prefetch) + 1) {
  for (Slot& slot : slots_) {
    slot.bytes.resize(static_cast<std::size_t>(batch) * image_bytes);
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
  for (std::size_t i = 0; i < slot.indices.size(); ++i) read_(slot.indices[i], slot.bytes.data() + i * image_bytes_);
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

}  // namespace ganymede::kernel
