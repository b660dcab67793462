#include "report/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/errors.hpp"
#include "support/errors.hpp"

namespace ganymede {
namespace {

using OrderedJson = nlohmann::ordered_json;
using testing::HasSubstr;

TEST(Yaml, StringsAreQuotedAndEscapedByCodePoint) {
  EXPECT_EQ(yaml_string(""), R"("")");
  EXPECT_EQ(yaml_string("no"), R"("no")");
  EXPECT_EQ(yaml_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(yaml_string("a\nb\tc\x01\x7f"), R"("a\nb\tc\x01\x7f")");
  // YAML 1.1 takes U+0085 and U+2028 for line breaks.
  EXPECT_EQ(yaml_string("\u0085\u2028\u00e9\U0001F600"), R"("\x85\u2028\xe9\U0001f600")");
  EXPECT_EQ(yaml_string("$(x) `y` {{z}} # !"), R"("$(x) `y` {{z}} # !")");
}

TEST(Yaml, WhatIsNoUtf8IsRefused) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80", "\xe2\x28\xa1"})
    EXPECT_THAT(message_of<ConfigError>([&] { yaml_string(text); }), HasSubstr("UTF-8"));
}

TEST(Yaml, ByHand) {
  OrderedJson document;
  document["#head"] =
      "one\n\ntwo\x1b"
      "é";
  document["a"] = 1;
  document["b"] = {{"c", true}, {"d", nullptr}, {"e", OrderedJson::object()}, {"f", OrderedJson::array()}};
  document["list"] = OrderedJson::array({"x", 2.5, {{"k", "v"}, {"l", OrderedJson::array({"m"})}}});
  document["needs quotes"] = "y";
  document["script"] = "first\n\n  second: $(x)\n";
  EXPECT_EQ(yaml(document), R"(# one
#
# two???
a: 1
b:
  c: true
  d: null
  e: {}
  f: []
list:
  - "x"
  - 2.5
  - k: "v"
    l:
      - "m"
"needs quotes": "y"
script: |
  first

    second: $(x)
)");
}

// What a literal block would change is quoted instead.
TEST(Yaml, BlocksHoldOnlyWhatTheyKeep) {
  for (const char* text : {"one line\n", " indented\nb\n", "\nempty first\n", "no end\nb", "two ends\nb\n\n",
                           "tab\tx\nb\n", "carriage\r\nb\n", "\u00e9\nb\n"}) {
    const OrderedJson document = {{"a", text}};
    EXPECT_EQ(yaml(document), "a: " + yaml_string(text) + "\n");
  }
}

}  // namespace
}  // namespace ganymede
