#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

SafeTensors some_tensors() {
  return {{{"a.weight", {{2, 3}, {1, 2, 3, 4, 5, 6}}}, {"b", {{2}, {-1, 0.5F}}}, {"scalar", {{}, {9}}}},
          {{"format", "pt"}}};
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string bytes(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

class SafetensorsTest : public testing::Test {
 protected:
  void expect_refused(const std::string& bytes, const std::string& message) {
    const auto file = scratch_.write("weights.safetensors", bytes);
    EXPECT_THAT([&] { read_safetensors(file); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr(file.string()), HasSubstr(message))));
  }
  Scratch scratch_;
};

TEST_F(SafetensorsTest, ReadsWhatItWrites) {
  const SafeTensors read = read_safetensors(scratch_.write("x", write_safetensors(some_tensors())));
  EXPECT_EQ(read.tensors, some_tensors().tensors);
  EXPECT_EQ(read.metadata, some_tensors().metadata);
}

TEST_F(SafetensorsTest, AlignsItsData) {
  std::uint64_t length = 0;
  std::memcpy(&length, write_safetensors(some_tensors()).data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
}

TEST_F(SafetensorsTest, RefusesLyingLengths) {
  expect_refused("abc", "found 3 bytes, expected a safetensors file");
  std::string huge = write_safetensors(some_tensors());
  std::memset(huge.data(), 0xff, 8);
  expect_refused(huge, "found a header length of 18446744073709551615");
  const std::string good = write_safetensors(some_tensors());
  expect_refused(good.substr(0, good.size() - 4), "found");
  expect_refused(good + "1234", "found 40 bytes of data, expected 36");
}

TEST_F(SafetensorsTest, RefusesContradictionsInTheHeader) {
  const auto entry = [](const char* type, const char* shape, const char* offsets) {
    return std::string("{\"dtype\":\"") + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  expect_refused(file_of("{\"x\":" + entry("F64", "[1]", "[0,8]") + "}", 8), "expected \"F32\"");
  expect_refused(file_of("{\"x\":" + entry("F32", "[3]", "[0,8]") + "}", 8), "the shape");
  expect_refused(file_of("{\"x\":" + entry("F32", "[1]", "[0,8]") + "}", 8), "found 8 bytes, expected 4 for the shape");
  expect_refused(file_of("{\"x\":" + entry("F32", "[2]", "[0,16]") + "}", 8), "/x/data_offsets");
  expect_refused(file_of("{\"x\":" + entry("F32", "[2]", "[8,0]") + "}", 8), "/x/data_offsets");
  expect_refused(file_of("{\"x\":" + entry("F32", "[1099511627776,1099511627776]", "[0,8]") + "}", 8), "/x/shape");
  expect_refused(file_of("{\"x\":" + entry("F32", "[-1]", "[0,4]") + "}", 4), "/x/shape/0");
  expect_refused(file_of("{\"x\":" + entry("F32", "[1]", "[0,4]") + ",\"y\":" + entry("F32", "[1]", "[0,4]") + "}", 4),
                 "tensors overlap");
  expect_refused(file_of("{\"x\":" + entry("F32", "[1]", "[4,8]") + "}", 8), "there is a gap");
  expect_refused(file_of("{\"x\":" + entry("F32", "[1]", "[0,4]") + ",\"x\":" + entry("F32", "[1]", "[4,8]") + "}", 8),
                 "x");
  expect_refused(file_of("{\"x\":", 0), "");
  expect_refused(file_of("[]", 0), "");
}

// 1,000 tensors that all name the same MiB: copied before they are found to overlap, they took a thousand times the
// file.
TEST_F(SafetensorsTest, OverlapsAreFoundBeforeAnythingIsCopied) {
  constexpr std::size_t kBytes = std::size_t{1} << 20U;
  std::string header;
  for (int i = 0; i < 1000; ++i)
    header += (i == 0 ? "{" : ",") + std::string("\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[262144],"data_offsets":[0,1048576]})";
  const auto file = scratch_.write("overlap", file_of(header + "}", kBytes));
  const std::string grown = run_child([&] {
    const auto peak = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;  // KiB
    };
    const auto before = peak();
    EXPECT_THROW(read_safetensors(file), ConfigError);
    return std::to_string(peak() - before);
  });
  EXPECT_LT(std::stol(grown), 300'000);
}

}  // namespace
}  // namespace ganymede::kernel
