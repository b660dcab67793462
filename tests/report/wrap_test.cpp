#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/table.hpp"

namespace ganymede::report {
namespace {

using testing::ElementsAre;

TEST(Wrap, KeepsTogetherWhatBelongsTogether) {
  EXPECT_THAT(unbreakable("1 x p3.2xlarge"), ElementsAre("1 x", "p3.2xlarge"));
  EXPECT_THAT(unbreakable("161.4 s .. 180.4 s"), ElementsAre("161.4 s ..", "180.4 s"));
  EXPECT_THAT(unbreakable("7 % or 5 \xc2\xb5s"), ElementsAre("7 %", "or", "5 \xc2\xb5s"));
  EXPECT_THAT(unbreakable("<- cheapest and fastest"), ElementsAre("<- cheapest", "and", "fastest"));
  EXPECT_THAT(unbreakable(""), ElementsAre());
}

TEST(Wrap, BreaksBetweenWords) {
  EXPECT_THAT(wrap_words("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_words("one two three", 13), ElementsAre("one two three"));
  EXPECT_THAT(wrap_words("a /path/that/is/long b", 6), ElementsAre("a", "/path/that/is/long", "b"));
  EXPECT_THAT(wrap_words("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 5), ElementsAre("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9"));
  EXPECT_THAT(wrap_words("", 3), ElementsAre(""));
}

TEST(Wrap, ProseIsIndentedByTwoMore) {
  EXPECT_EQ(wrap_prose("warning: nothing is known of how long it takes\n  and more\n", 25),
            "warning: nothing is\n  known of how long it\n  takes\n  and more\n");
  EXPECT_EQ(wrap_prose("  a line that begins further in", 27), "  a line that begins\n    further in");
}

// Wrapping would destroy the alignment of columns.
TEST(Wrap, ProseLeavesColumnsAlone) {
  const std::string row = "name  value that is long  and another one\n\nlast";
  EXPECT_EQ(wrap_prose(row, 20), row);
  EXPECT_EQ(wrap_prose("", 20), "");
  EXPECT_EQ(wrap_prose("\n", 20), "\n");
}

TEST(Wrap, HangsTextBesideItsHead) {
  EXPECT_EQ(hanging("ring  ", "each rank sends to the next one", 30), "ring  each rank sends to the\n      next one\n");
  EXPECT_EQ(hanging("ring  ", "each rank sends to the next one", kAnyWidth), "ring  each rank sends to the next one\n");
}

}  // namespace
}  // namespace ganymede::report
