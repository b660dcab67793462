#include "kernel/data/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/errors.hpp"
#include "kernel/data/batches.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr ImageShape kPixel{1, 1, 1};

Images numbered_images(int count) {
  Images images{count, 1, 1, {}};
  for (int i = 0; i < count; ++i) images.pixels.push_back(static_cast<std::uint8_t>(i));
  return images;
}

TEST(Dataset, ReadsADirectoryUnderBothNames) {
  for (const std::string name : {"train-images-idx3-ubyte", "train-images.idx3-ubyte"}) {
    const Scratch scratch;
    scratch.write(name, write_idx_images(numbered_images(4)));
    const Dataset dataset = open_dataset(scratch.path().string(), kPixel);
    EXPECT_EQ(dataset.images.count, 4);
    EXPECT_TRUE(dataset.labels.empty());
  }
}

TEST(Dataset, LabelsMustMatchTheImages) {
  const Scratch scratch;
  scratch.write("train-images-idx3-ubyte", write_idx_images(numbered_images(3)));
  scratch.write("train-labels-idx1-ubyte", write_idx_labels({7, 8, 9}));
  EXPECT_EQ(open_dataset(scratch.path().string(), kPixel).labels, (std::vector<std::uint8_t>{7, 8, 9}));
  scratch.write("train-labels-idx1-ubyte", write_idx_labels({7, 8}));
  EXPECT_THAT([&] { open_dataset(scratch.path().string(), kPixel); },
              ThrowsMessage<ConfigError>(HasSubstr("found 2 labels, expected 3")));
}

TEST(Dataset, NamesWhatIsMissing) {
  const Scratch scratch;
  EXPECT_THAT([&] { open_dataset(scratch.path().string(), kPixel); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("found neither train-images-idx3-ubyte nor data_batch_1.bin nor PNG or JPEG files")));
  EXPECT_THAT([&] { open_dataset(scratch.file("absent").string(), kPixel); },
              ThrowsMessage<ConfigError>(HasSubstr("found no directory")));
}

TEST(Dataset, TheBuiltinOneIsWrittenOnceAndReadBack) {
  const Scratch scratch;
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1), 0);
  const Dataset dataset = open_dataset("builtin", {28, 28, 1});
  EXPECT_EQ(dataset.images.height, 28);
  EXPECT_EQ(dataset.images.width, 28);
  EXPECT_GE(dataset.images.count, 10'000);
  EXPECT_EQ(dataset.labels.size(), static_cast<std::size_t>(dataset.images.count));
  const auto directory = write_builtin_dataset(scratch.path() / "ganymede", {28, 28, 1});
  const auto written = std::filesystem::last_write_time(directory / "train-images-idx3-ubyte");
  EXPECT_EQ(open_dataset("builtin", {28, 28, 1}).images.pixels, dataset.images.pixels);
  EXPECT_EQ(std::filesystem::last_write_time(directory / "train-images-idx3-ubyte"), written);

  // One that was cut short is drawn again.
  std::filesystem::resize_file(directory / "train-images-idx3-ubyte", 1000);
  EXPECT_EQ(open_dataset("builtin", {28, 28, 1}).images.pixels, dataset.images.pixels);
}

TEST(Batches, BringEveryImageOnceAnEpoch) {
  const Images images = numbered_images(12);
  Batches batches(images, 4, 1);
  std::vector<std::uint8_t> orders[2];
  for (auto& order : orders) {
    for (int i = 0; i < 3; ++i) {
      const auto batch = batches.next();
      order.insert(order.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(std::set<std::uint8_t>(order.begin(), order.end()).size(), 12U);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(batches.epoch(), 2);
}

TEST(Batches, SkipTheRemainder) {
  const Images images = numbered_images(5);
  Batches batches(images, 4, 1);
  batches.next();
  EXPECT_EQ(batches.epoch(), 1);
  batches.next();
  EXPECT_EQ(batches.epoch(), 2);
}

}  // namespace
}  // namespace ganymede::kernel
