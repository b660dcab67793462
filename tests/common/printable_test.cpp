#include "common/printable.hpp"

#include <gtest/gtest.h>

namespace ganymede {
namespace {

TEST(Printable, KeepsTextInAnyLanguage) {
  for (const char* text : {"", "a b", "\u00e4\u00f6", "\u6f22", "\U0001F600", "~"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\u001b[2Jb");
  EXPECT_EQ(printable("a\nb"), "a\\u000ab");
  EXPECT_EQ(printable("a\nb", "\n"), "a\nb");
  EXPECT_EQ(printable("\x7f"), "\\u007f");
  EXPECT_EQ(printable("\u009b2J"), "\\u009b2J");  // the control sequence introducer of ISO 6429
  EXPECT_EQ(printable("\u202egnp.exe"), "\\u202egnp.exe");
}

TEST(Printable, WritesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\x9b"
                      "2J"),
            "a\\x9b2J");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xe6\xbc"), "\\xe6\\xbc");  // cut short
}

TEST(Utf8, IsAsRfc3629HasIt) {
  for (const char* text : {"", "a", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"})
    EXPECT_FALSE(is_utf8(text)) << printable(text);
}

}  // namespace
}  // namespace ganymede
