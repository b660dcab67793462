#include "kernel/data/glyphs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "common/random.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::size_t kPixels = 28 * 28;

TEST(Glyphs, SameSeedSameBytes) {
  EXPECT_EQ(draw_glyphs(50, 3).images.pixels, draw_glyphs(50, 3).images.pixels);
  EXPECT_NE(draw_glyphs(50, 3).images.pixels, draw_glyphs(50, 4).images.pixels);
  // More images do not change the first ones.
  auto more = draw_glyphs(60, 3).images.pixels;
  more.resize(50 * kPixels);
  EXPECT_EQ(more, draw_glyphs(50, 3).images.pixels);
}

TEST(Glyphs, HaveTenClassesEquallyOften) {
  const Glyphs glyphs = draw_glyphs(200, 1);
  std::array<int, 10> counts{};
  for (const auto label : glyphs.labels) ++counts.at(label);
  for (const int count : counts) EXPECT_EQ(count, 20);
}

TEST(Glyphs, AreStrokesOnBlackAwayFromTheEdge) {
  const Glyphs glyphs = draw_glyphs(500, 1);
  for (std::size_t i = 0; i < glyphs.labels.size(); ++i) {
    const auto* image = glyphs.images.pixels.data() + i * kPixels;
    const auto lit = std::count_if(image, image + kPixels, [](std::uint8_t pixel) { return pixel > 127; });
    EXPECT_GE(lit, 15) << i;  // the shortest stroke of a "1" is longer
    EXPECT_LE(lit, static_cast<long>(kPixels) / 2) << i;
    for (std::size_t x = 0; x < 28; ++x) {
      EXPECT_EQ(image[x], 0) << i;
      EXPECT_EQ(image[27 * 28 + x], 0) << i;
    }
  }
}

/// An image's squared distance from the mean image of its own class is not zero, but mostly smaller than from other
/// classes' means.
TEST(Glyphs, ClassesDifferAndImagesOfAClassVary) {
  const Glyphs glyphs = draw_glyphs(1000, 1);
  std::array<std::array<double, kPixels>, 10> means{};
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t p = 0; p < kPixels; ++p)
      means.at(glyphs.labels[i]).at(p) += glyphs.images.pixels[i * kPixels + p] / 100.0;
  std::size_t right = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::array<double, 10> distance{};
    for (std::size_t digit = 0; digit < 10; ++digit)
      for (std::size_t p = 0; p < kPixels; ++p) {
        const double off = glyphs.images.pixels[i * kPixels + p] - means.at(digit).at(p);
        distance.at(digit) += off * off;
      }
    EXPECT_GT(distance.at(glyphs.labels[i]), 0);
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() == glyphs.labels[i] ? 1 : 0;
  }
  // The nearest class mean gives the right class for most images; by chance it would be one in ten.
  EXPECT_GT(right, 700U);
}

TEST(Glyphs, InColourFillTheirImages) {
  for (const int side : {32, 64}) {
    const Glyphs glyphs = draw_glyphs(20, 1, {side, side, 3});
    const auto plane = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
    ASSERT_EQ(glyphs.images.pixels.size(), 20 * 3 * plane);
    EXPECT_EQ(glyphs.images.channels, 3);
    for (std::size_t i = 0; i < 60; ++i) {
      // In each channel of each image, some pixels of the pen are brighter than the background.
      const auto begin = glyphs.images.pixels.begin() + static_cast<std::ptrdiff_t>(i * plane);
      const auto [least, most] = std::minmax_element(begin, begin + static_cast<std::ptrdiff_t>(plane));
      EXPECT_GT(*most - *least, 20);
    }
  }
}

}  // namespace
}  // namespace ganymede::kernel
