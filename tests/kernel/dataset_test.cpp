#include "kernel/data/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <set>

#include "common/errors.hpp"
#include "kernel/data/loader.hpp"
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

// Everyone may make a folder in the one for temporary files, and put files of their choice in it.
TEST(Dataset, AnotherUsersFolderKeepsNothingOfOurs) {
  const Scratch scratch;
  const std::string kept[] = {"XDG_CACHE_HOME", "HOME", "TMPDIR"};
  std::map<std::string, std::string> before;
  for (const std::string& name : kept)
    if (const char* value = std::getenv(name.c_str())) before[name] = value;
  ::setenv("XDG_CACHE_HOME", "/proc/none", 1);
  ::setenv("HOME", "/proc/none", 1);
  ::setenv("TMPDIR", scratch.path().c_str(), 1);
  const auto folder = scratch.path() / ("ganymede-" + std::to_string(::geteuid()));
  EXPECT_EQ(cache_directory(), folder);
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms(0700));
  EXPECT_EQ(cache_directory(), folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  EXPECT_THAT([] { cache_directory(); }, ThrowsMessage<ConfigError>(HasSubstr("what others may write to")));
  std::filesystem::remove(folder);
  std::filesystem::create_directory_symlink(scratch.path(), folder);
  EXPECT_THROW(cache_directory(), ConfigError);
  for (const std::string& name : kept)
    before.contains(name) ? ::setenv(name.c_str(), before[name].c_str(), 1) : ::unsetenv(name.c_str());
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

  // A file that was cut short is drawn again.
  std::filesystem::resize_file(directory / "train-images-idx3-ubyte", 1000);
  EXPECT_EQ(open_dataset("builtin", {28, 28, 1}).images.pixels, dataset.images.pixels);
}

class LoaderTest : public testing::TestWithParam<LoaderOptions> {};
INSTANTIATE_TEST_SUITE_P(Threads, LoaderTest,
                         testing::Values(LoaderOptions{0, 1}, LoaderOptions{1, 1}, LoaderOptions{4, 1},
                                         LoaderOptions{3, 4}));

ReadImage numbers() {
  return [](std::uint32_t index, std::uint8_t* out) { *out = static_cast<std::uint8_t>(index); };
}

TEST_P(LoaderTest, BringsEveryImageOnceAnEpochInTheSameOrderHoweverManyThreads) {
  Loader loader(12, 1, numbers(), 4, 1, GetParam());
  Order order(12, 4, 1);
  std::vector<std::uint8_t> seen[2];
  for (auto& epoch : seen) {
    for (int i = 0; i < 3; ++i) {
      const auto batch = loader.next();
      const auto expected = order.next();
      EXPECT_TRUE(std::equal(batch.begin(), batch.end(), expected.begin(), expected.end()));
      EXPECT_EQ(loader.position(), order.position());
      EXPECT_EQ(loader.epoch(), order.epoch());
      epoch.insert(epoch.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(std::set<std::uint8_t>(epoch.begin(), epoch.end()).size(), 12U);
  }
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_EQ(loader.epoch(), 2);
}

TEST_P(LoaderTest, SkipsTheRemainder) {
  Loader loader(5, 1, numbers(), 4, 1, GetParam());
  loader.next();
  EXPECT_EQ(loader.epoch(), 1);
  loader.next();
  EXPECT_EQ(loader.epoch(), 2);
}

TEST_P(LoaderTest, GoesOnFromAPlaceInTheData) {
  Loader loader(40, 1, numbers(), 4, 9, GetParam()), again(40, 1, numbers(), 4, 9, GetParam());
  for (int i = 0; i < 13; ++i) loader.next();
  again.next();
  again.seek(loader.epoch(), loader.position());
  for (int i = 0; i < 9; ++i) {
    const auto batch = loader.next(), other = again.next();
    EXPECT_TRUE(std::equal(batch.begin(), batch.end(), other.begin(), other.end())) << i;
  }
}

TEST_P(LoaderTest, ThrowsWhatAReaderThrewWhenItsBatchIsAskedFor) {
  Order order(12, 4, 1);
  order.next();
  const std::uint32_t damaged = order.next()[2];
  Loader loader(
      12, 1,
      [damaged](std::uint32_t index, std::uint8_t*) {
        if (index == damaged) throw ConfigError("picture.png: damaged");
      },
      4, 1, GetParam());
  loader.next();
  EXPECT_THROW(loader.next(), ConfigError);
}

TEST_P(LoaderTest, MakesNoMoreThanItsQueueHolds) {
  std::atomic<int> read{0};
  Loader loader(
      1000, 1, [&](std::uint32_t, std::uint8_t*) { ++read; }, 10, 1, GetParam());
  for (int i = 0; i < 5; ++i) {
    loader.next();
    EXPECT_GE(read, 10 * (i + 1));
    EXPECT_LE(read, 10 * (i + 1 + GetParam().prefetch));
  }
}

}  // namespace
}  // namespace ganymede::kernel
