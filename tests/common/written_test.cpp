#include "common/written.hpp"

#include <gtest/gtest.h>

namespace ganymede {
namespace {

TEST(Counts, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_count("50000000"), 50'000'000);
  EXPECT_EQ(parse_count("50_000_000"), 50'000'000);
  EXPECT_EQ(parse_count("5e7"), 50'000'000);
  EXPECT_EQ(parse_count("50M"), 50'000'000);
  EXPECT_EQ(parse_count("50m"), 50'000'000);
  EXPECT_EQ(parse_count("1.5B"), 1'500'000'000);
  EXPECT_EQ(parse_count("1.1k"), 1100);
  EXPECT_EQ(parse_count("0.5G"), 500'000'000);
  EXPECT_EQ(parse_count("-3"), -3);
  EXPECT_EQ(parse_count("0"), 0);
}

TEST(Counts, AreWholeAndPlain) {
  // Whether 1,500 and 1.500 mean a thousand is not known; 50MB and 2 k are something else.
  for (const char* text : {"", "M", "x", "1.5", "1,500", "50MB", "2 k", "1e400", "nan", "inf", "0x10", "_1", "1__0",
                           "1_", "1.0001k", "9007199254740992"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace ganymede
