#include "exports/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "support/errors.hpp"

namespace ganymede::exports {
namespace {
using testing::HasSubstr;

std::string string_as_yaml(const std::string& text) { return write_yaml(OrderedJson{{"a", text}}); }

TEST(Yaml, StringsAreQuotedAndEscapedByCodePoint) {
  EXPECT_EQ(string_as_yaml(""), "a: \"\"\n");
  EXPECT_EQ(string_as_yaml("no"), "a: \"no\"\n");
  EXPECT_EQ(string_as_yaml("a\"b\\c"), "a: \"a\\\"b\\\\c\"\n");
  EXPECT_EQ(string_as_yaml("a\nb\tc\x01\x7f"), "a: \"a\\nb\\tc\\x01\\x7f\"\n");
  // YAML 1.1 takes U+0085 and U+2028 for line breaks.
  EXPECT_EQ(string_as_yaml("\u0085\u2028\u00e9\U0001F600"), "a: \"\\x85\\u2028\\xe9\\U0001f600\"\n");
  EXPECT_EQ(string_as_yaml("$(x) `y` {{z}} # !"), "a: \"$(x) `y` {{z}} # !\"\n");
}

TEST(Yaml, RefusesTextThatIsNotUtf8) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80", "\xe2\x28\xa1"})
    EXPECT_THAT(message_of<ConfigError>([&] { string_as_yaml(text); }), HasSubstr("UTF-8"));
}

TEST(Yaml, ByHand) {
  OrderedJson document;
  document["#head"] =
      "one\n\ntwo\x1b"
      "é";
  document["a"] = 1;
  document["b"] = {{"#first", "of a map"}, {"c", true}, {"d", nullptr}, {"e", OrderedJson::object()}};
  document["b"]["#between"] = "two\nlines";
  document["b"]["f"] = OrderedJson::array();
  document["list"] = OrderedJson::array({"x", 2.5, {{"k", "v"}, {"l", OrderedJson::array({"m"})}}});
  document["script"] = "first\n\n  second: $(x)\n# not a comment\n";
  document["#last"] = "below a block";
  document["z"] = -1;
  EXPECT_EQ(write_yaml(document), R"(# one
#
# two???
a: 1
b:
  # of a map
  c: true
  d: ~
  e: {}
  # two
  # lines
  f: []
list:
  - "x"
  - 2.5
  - k: "v"
    l:
      - "m"
script: |
  first

    second: $(x)
  # not a comment
# below a block
z: -1
)");
}

// The texts include those that YAML readers are known to take for another type.
TEST(Yaml, EveryTextIsReadBack) {
  for (const char* text : {"one line\n", " indented\nb\n", "\nempty first\n", "no end\nb", "two ends\nb\n\n",
                           "tab\tx\nb\n", "carriage\r\nb\n", "\u00e9\nb\n", "a\n\n  b\n#c\n", "~", "1e3", "- x", "|"})
    EXPECT_EQ(YAML::Load(string_as_yaml(text))["a"].as<std::string>(), text);
}

// Texts that a literal block would change are quoted instead.
TEST(Yaml, BlocksHoldOnlyWhatTheyKeep) {
  EXPECT_EQ(string_as_yaml("a\nb\n"), "a: |\n  a\n  b\n");
  for (const char* text : {"one line\n", " indented\nb\n", "\nempty first\n", "no end\nb", "two ends\nb\n\n",
                           "tab\tx\nb\n", "carriage\r\nb\n", "\u00e9\nb\n"})
    EXPECT_THAT(string_as_yaml(text), testing::StartsWith("a: \"")) << text;
}

TEST(Yaml, CommentsHoldPrintableLines) { EXPECT_EQ(write_yaml_comment("a\n\nb\u2028c\n"), "# a\n#\n# b???c\n"); }

}  // namespace
}  // namespace ganymede::exports
