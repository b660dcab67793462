#include "kernel/data/idx.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>

#include "common/errors.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Images two_images() { return {2, 2, 3, {0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255}}; }

class IdxTest : public testing::Test {
 protected:
  void expect_refused(const std::string& bytes, const std::string& found, const std::string& expected) {
    const auto file = scratch_.write("images", bytes);
    EXPECT_THAT([&] { read_idx_images(file); },
                ThrowsMessage<ConfigError>(
                    AllOf(HasSubstr(file.string()), HasSubstr("found " + found), HasSubstr("expected " + expected))));
  }

  /// A valid file with one big-endian word of the header replaced.
  static std::string with_word(std::size_t offset, std::uint32_t value) {
    std::string bytes = write_idx_images(two_images());
    for (std::size_t i = 0; i < 4; ++i) bytes[offset + i] = static_cast<char>(value >> (24 - 8 * i) & 0xff);
    return bytes;
  }

  Scratch scratch_;
};

TEST_F(IdxTest, ReadsWhatItWrites) {
  const Images read = read_idx_images(scratch_.write("images", write_idx_images(two_images())));
  EXPECT_EQ(read.count, 2);
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.pixels, two_images().pixels);
  const std::vector<std::uint8_t> labels{3, 1, 4};
  EXPECT_EQ(read_idx_labels(scratch_.write("labels", write_idx_labels(labels))), labels);
}

TEST_F(IdxTest, ReadsColoursInFourDimensions) {
  const Images colour{2, 1, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3};
  const std::string bytes = write_idx_images(colour);
  EXPECT_EQ(bytes.substr(0, 4), std::string("\0\0\x08\x04", 4));
  const Images read = read_idx_images(scratch_.write("images", bytes));
  EXPECT_EQ(read.channels, 3);
  EXPECT_EQ(read.count, 2);
  EXPECT_EQ(read.pixels, colour.pixels);
  std::string two = bytes;
  two[11] = 2;
  expect_refused(two, "2 channels", "1 or 3");
}

// Zeros deflate to a thousandth: 200 kB would fill 200 MB, and 3 MB 3 GB.
TEST_F(IdxTest, RefusesGzipThatInflatesToMuchMore) {
  const auto file = scratch_.file("images.gz");
  const gzFile out = gzopen(file.c_str(), "wb");
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 200; ++i) gzwrite(out, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(out);
  expect_refused(read_file(file), "more than", "at most 100 times the file's size");
}

TEST_F(IdxTest, InflatesGzip) {
  const std::string plain = write_idx_images(two_images());
  const auto file = scratch_.file("images.gz");
  const gzFile out = gzopen(file.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, plain.data(), static_cast<unsigned>(plain.size())), static_cast<int>(plain.size()));
  gzclose(out);
  EXPECT_EQ(read_idx_images(file).pixels, two_images().pixels);
  const std::string packed = read_file(file);
  expect_refused(packed.substr(0, packed.size() - 6), "the end of the file", "more of its gzip");
  std::string flipped = packed;
  flipped[packed.size() - 12] ^= 1;
  EXPECT_THROW(read_idx_images(scratch_.write("images", flipped)), ConfigError);  // its checksum tells
}

TEST_F(IdxTest, HasMnistsLayout) {
  const std::string bytes = write_idx_images(two_images());
  const std::string header("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16);
  EXPECT_EQ(bytes.substr(0, 16), header);
  EXPECT_EQ(bytes.size(), 16U + 12U);
}

TEST_F(IdxTest, RefusesWhatIsNotAnImageFile) {
  expect_refused("", "an empty file", "IDX images");
  expect_refused("\x1f\x8b\x08", "the end of the file", "more of its gzip: it is cut short");
  expect_refused(write_idx_labels({1, 2, 3}), "magic number 0x00000801", "0x00000803: IDX images");
  expect_refused(std::string("\0\0\x08\x03\0\0", 6), "6 bytes", "a header with the number of images");
}

TEST_F(IdxTest, RefusesALengthThatContradictsTheHeader) {
  const std::string good = write_idx_images(two_images());
  expect_refused(good.substr(0, good.size() - 1), "11 bytes after the header",
                 "12 as the header says: the file is cut short");
  expect_refused(good + "x", "13 bytes after the header", "12 as the header says");
  expect_refused(with_word(4, 3), "12 bytes after the header", "18 as the header says");
}

TEST_F(IdxTest, RefusesZeroAndAbsurdCounts) {
  expect_refused(with_word(4, 0), "number of images = 0", "1 to");
  expect_refused(with_word(8, 0), "number of rows = 0", "1 to");
  expect_refused(with_word(12, 0xffffffff), "number of columns = 4294967295", "1 to 4096");
}

TEST_F(IdxTest, NamesAMissingFile) {
  const auto file = scratch_.file("nothing-here");
  EXPECT_THAT([&] { read_idx_images(file); }, ThrowsMessage<ConfigError>(HasSubstr(file.string())));
}

}  // namespace
}  // namespace ganymede::kernel
