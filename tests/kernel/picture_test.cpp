// Pictures in the forms that users have: PNG and JPEG files of any size, CIFAR-10's files, and folders of pictures.

#include "kernel/data/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "kernel/data/dataset.hpp"
#include "kernel/data/idx.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

std::string png_of(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr);
  std::string bytes(size, 0);
  png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr);
  return bytes;
}

std::string jpeg_of(const Picture& picture) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  tjCompress2(encoder, picture.pixels.data(), picture.width, 0, picture.height, TJPF_RGB, &memory, &size, TJSAMP_420,
              100, TJFLAG_ACCURATEDCT);
  std::string bytes(reinterpret_cast<char*>(memory), size);
  tjFree(memory);
  tjDestroy(encoder);
  return bytes;
}

/// A picture whose red increases to the right and whose green increases downwards.
Picture slopes(int height, int width) {
  Picture out{height, width, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const int value : {10 * x, 10 * y, 100}) out.pixels.push_back(static_cast<std::uint8_t>(value));
  return out;
}

Bytes fitted(const Picture& picture, ImageShape shape) {
  Bytes out(static_cast<std::size_t>(shape.pixels()));
  fit_picture(picture, shape, out);
  return out;
}

TEST(Picture, ReadsPngExactlyAndJpegNearly) {
  const Scratch scratch;
  const Picture given = slopes(7, 9);
  const Picture png = read_picture(scratch.write("a.png", png_of(given)));
  EXPECT_EQ(png.height, 7);
  EXPECT_EQ(png.width, 9);
  EXPECT_EQ(png.pixels, given.pixels);
  const Picture jpeg = read_picture(scratch.write("wrongly-named.png", jpeg_of(given)));
  ASSERT_EQ(jpeg.pixels.size(), given.pixels.size());
  for (std::size_t i = 0; i < given.pixels.size(); ++i) EXPECT_NEAR(jpeg.pixels[i], given.pixels[i], 6);
}

TEST(Picture, IsShrunkByAreasAndCroppedInTheMiddle) {
  // 4x8 to 2x2: the picture is halved to 2x4, and the middle two columns are kept, which come from source columns 2 to
  // 5.
  EXPECT_THAT(fitted(slopes(4, 8), {2, 2, 3}), ElementsAre(25, 45, 25, 45, 5, 5, 25, 25, 100, 100, 100, 100));
  // At the same size the pixels stay the same, plane by plane.
  EXPECT_THAT(fitted(slopes(2, 2), {2, 2, 3}), ElementsAre(0, 10, 0, 10, 0, 0, 10, 10, 100, 100, 100, 100));
  // The pixel between two others is the mean of both.
  EXPECT_THAT(fitted({1, 2, {0, 0, 0, 100, 100, 100}}, {1, 1, 1}), ElementsAre(50));
  const Bytes large = fitted(slopes(2, 2), {4, 4, 3});
  EXPECT_EQ(large[0], 0);
  EXPECT_EQ(large[3], 10);
  EXPECT_TRUE(large[1] > 0 && large[1] < large[2] && large[2] < 10) << int{large[1]} << " " << int{large[2]};
}

TEST(Picture, GreyWeighsColoursAsTheEyeDoes) {
  EXPECT_THAT(fitted({1, 1, {200, 0, 0}}, {1, 1, 1}), ElementsAre(60));   // 0.299 x 200
  EXPECT_THAT(fitted({1, 1, {0, 200, 0}}, {1, 1, 1}), ElementsAre(117));  // 0.587 x 200
}

TEST(Picture, RefusesWhatIsDamaged) {
  const Scratch scratch;
  const auto expect_refused = [&](const std::string& bytes, const std::string& words) {
    const auto file = scratch.write("bad.png", bytes);
    EXPECT_THAT([&] { read_picture(file); },
                ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("bad.png: found"), HasSubstr(words))));
  };
  expect_refused("", "an empty file");
  expect_refused("GIF89a", "expected a PNG or a JPEG");
  const std::string png = png_of(slopes(20, 20)), jpeg = jpeg_of(slopes(20, 20));
  expect_refused(png.substr(0, png.size() / 2), "damaged PNG");
  expect_refused(png.substr(0, 20), "damaged PNG");
  expect_refused(jpeg.substr(0, jpeg.size() / 2), "damaged JPEG");
  expect_refused(jpeg.substr(0, 30), "damaged JPEG");
  std::string huge = png;
  for (const std::size_t at : {16U, 20U}) huge[at] = 0x20;  // 537 million pixels a side
  EXPECT_THROW(read_picture(scratch.write("bad.png", huge)), ConfigError);
}

TEST(Dataset, ReadsAFolderOfPicturesAtAnyDepthInTheOrderOfTheirNames) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "deeper");
  scratch.write("deeper/b.png", png_of({1, 1, {9, 9, 9}}));
  scratch.write("a.JPG", jpeg_of({1, 1, {200, 200, 200}}));
  scratch.write("notes.txt", "no picture");
  const Dataset dataset = open_dataset(scratch.path().string(), {1, 1, 3});
  EXPECT_EQ(dataset.images.count, 2);
  EXPECT_NEAR(dataset.images.pixels[0], 200, 2);
  EXPECT_EQ(dataset.images.pixels[3], 9);
  scratch.write("c.png", "\x89PNG and nothing more");
  EXPECT_THAT(
      [&] {
        open_dataset(scratch.path().string(), {1, 1, 3});
      },
      ThrowsMessage<ConfigError>(HasSubstr("c.png: found a damaged PNG")));
}

std::string cifar_of(const std::vector<int>& labels) {
  std::string bytes;
  for (const int label : labels) {
    bytes += static_cast<char>(label);
    for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(label + i / 1024);
  }
  return bytes;
}

TEST(Dataset, ReadsCifarsFiles) {
  const Scratch scratch;
  scratch.write("data_batch_1.bin", cifar_of({7, 2}));
  scratch.write("data_batch_2.bin", cifar_of({9}));
  const Dataset dataset = open_dataset(scratch.path().string(), {32, 32, 3});
  EXPECT_EQ(dataset.images.count, 3);
  EXPECT_THAT(dataset.labels, ElementsAre(7, 2, 9));
  EXPECT_EQ(dataset.images.pixels[0], 7);
  EXPECT_EQ(dataset.images.pixels[3 * 3072 - 1], 11);  // the last image's blue
  EXPECT_THAT(
      [&] {
        open_dataset(scratch.path().string(), {64, 64, 3});
      },
      ThrowsMessage<ConfigError>(HasSubstr("found images of 32x32x3, expected 64x64x3")));
}

TEST(Cifar, RefusesOtherLengthsAndClasses) {
  const Scratch scratch;
  EXPECT_THAT([&] { read_cifar({scratch.write("x.bin", cifar_of({1}).substr(1))}); },
              ThrowsMessage<ConfigError>(HasSubstr("x.bin: found 3072 bytes, expected a multiple of 3073")));
  EXPECT_THAT([&] { read_cifar({scratch.write("x.bin", "")}); },
              ThrowsMessage<ConfigError>(HasSubstr("found 0 bytes")));
  EXPECT_THAT(
      [&] {
        read_cifar({scratch.write("x.bin", cifar_of({1, 10}))});
      },
      ThrowsMessage<ConfigError>(HasSubstr("image 1: found class 10, expected 0 to 9")));
}

}  // namespace
}  // namespace ganymede::kernel
