#include <gtest/gtest.h>
#include <png.h>

#include <cmath>

#include "kernel/samples.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

Picture decode(const std::string& bytes, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), 0);
  image.format = format;
  Picture picture{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr), 0);
  return picture;
}

TEST(ImageGrid, PutsEachImageInItsCell) {
  // Two rows of three 1x2 images of increasing brightness.
  std::vector<float> images;
  for (int i = 0; i < 12; ++i) images.push_back(static_cast<float>(i) / 11.0F);
  const Picture picture = decode(png_grid(images, {1, 2, 1}, 2, 3), PNG_FORMAT_GRAY);
  EXPECT_EQ(picture.width, 3 * 3 + 1);
  EXPECT_EQ(picture.height, 2 * 2 + 1);
  for (int cell = 0; cell < 6; ++cell)
    for (int x = 0; x < 2; ++x) {
      const int row = cell / 3 * 2 + 1, column = cell % 3 * 3 + 1 + x;
      const long expected = std::lround(static_cast<float>(cell * 2 + x) / 11.0F * 255.0F);
      EXPECT_EQ(picture.pixels[static_cast<std::size_t>(row * picture.width + column)], expected);
    }
}

TEST(ImageGrid, ClampsAndKeepsColours) {
  const std::vector<float> pixel{-1, 0.5F, 2};
  const Picture picture = decode(png_grid(pixel, {1, 1, 3}, 1, 1), PNG_FORMAT_RGB);
  const std::size_t centre = static_cast<std::size_t>(picture.width + 1) * 3;
  EXPECT_EQ(picture.pixels[centre], 0);
  EXPECT_EQ(picture.pixels[centre + 1], 128);
  EXPECT_EQ(picture.pixels[centre + 2], 255);
}

TEST(ImageGrid, SamplesAreTheSameForTheSameSeedAndLeaveTheTrainingAlone) {
  const Scratch scratch;
  const TrainOptions options = small_training(scratch, 40);
  Trainer with(options), without(options);
  with.run(2);
  without.run(2);
  const std::string first = sample_grid(with.gan(), with.ops(), 1, 64);  // more images than a batch
  EXPECT_EQ(first, sample_grid(with.gan(), with.ops(), 1, 64));
  EXPECT_NE(first, sample_grid(with.gan(), with.ops(), 2, 64));
  EXPECT_EQ(decode(first, PNG_FORMAT_GRAY).width, 8 * 29 + 1);
  const Picture five = decode(sample_grid(with.gan(), with.ops(), 1, 5), PNG_FORMAT_GRAY);  // three columns, two rows
  EXPECT_EQ(five.width, 3 * 29 + 1);
  EXPECT_EQ(five.height, 2 * 29 + 1);
  EXPECT_EQ(with.step().generator, without.step().generator);
}

}  // namespace
}  // namespace ganymede::kernel
