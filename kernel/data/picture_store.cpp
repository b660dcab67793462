#include "kernel/data/picture_store.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <system_error>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "kernel/data/picture.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"

namespace ganymede::kernel {

PictureStore::PictureStore(std::vector<std::filesystem::path> files, ImageShape shape, bool cached)
    : files_(std::move(files)),
      shape_(shape),
      cached_(cached),
      kept_(new std::atomic<std::uint8_t*>[files_.size() / static_cast<std::size_t>(shape.frames)]()) {}

PictureStore::~PictureStore() {
  for (int i = 0; i < count(); ++i) delete[] kept_[static_cast<std::size_t>(i)].load();
}

void PictureStore::decode(std::uint32_t index, std::uint8_t* out) const {
  const ImageShape still{shape_.height, shape_.width, shape_.channels};
  const auto frames = static_cast<std::size_t>(shape_.frames), channels = static_cast<std::size_t>(shape_.channels);
  if (frames == 1)
    return fit_picture(read_picture(files_[index]), still, {out, static_cast<std::size_t>(still.pixels())});
  const std::size_t plane = static_cast<std::size_t>(still.height) * static_cast<std::size_t>(still.width);
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(still.pixels()));
  for (std::size_t f = 0; f < frames; ++f) {
    fit_picture(read_picture(files_[index * frames + f]), still, frame);
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(out + (c * frames + f) * plane, frame.data() + c * plane, plane);
  }
}

void PictureStore::read(std::uint32_t index, std::uint8_t* out) const {
  const auto bytes = static_cast<std::size_t>(shape_.pixels());
  if (const std::uint8_t* kept = kept_[index].load(std::memory_order_acquire)) {
    std::memcpy(out, kept, bytes);
    return;
  }
  decode(index, out);
  if (!cached_) return;
  auto copy = std::make_unique<std::uint8_t[]>(bytes);
  std::memcpy(copy.get(), out, bytes);
  std::uint8_t* none = nullptr;
  // If another thread was first, its copy, which has the same bytes, stays.
  if (kept_[index].compare_exchange_strong(none, copy.get(), std::memory_order_acq_rel)) copy.release();
}

Images PictureStore::decode_all() const {
  Images images{count(), shape_.height, shape_.width, {}, shape_.channels, shape_.frames};
  const auto image_bytes = static_cast<std::size_t>(shape_.pixels()), many = static_cast<std::size_t>(images.count);
  images.pixels.resize(many * image_bytes);
  ThreadPool pool(usable_cores());
  // A chunk must not throw. Errors are kept, and that of the first damaged file is thrown afterwards.
  constexpr std::size_t kChunk = 16;
  const std::size_t chunks = (many + kChunk - 1) / kChunk;
  std::vector<std::string> errors(chunks);
  pool.run(static_cast<int>(chunks), [&](int chunk, int) {
    const auto index = static_cast<std::size_t>(chunk);
    try {
      for (std::size_t i = index * kChunk; i < std::min(many, (index + 1) * kChunk); ++i)
        read(static_cast<std::uint32_t>(i), images.pixels.data() + i * image_bytes);
    } catch (const std::exception& error) {
      errors[index] = error.what();
    }
  });
  for (const std::string& error : errors)
    if (!error.empty()) throw ConfigError(error);
  return images;
}

std::uint64_t PictureStore::fingerprint() const {
  std::string all;
  for (const auto& file : files_) {
    std::error_code ignored;
    all += fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored));
  }
  return fnv1a(all);
}

}  // namespace ganymede::kernel
