// Every way in which a file can be wrong, and what the message must say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string parse_error(std::string_view text) {
  return message_of<ConfigError>([&] { JsonNode::parse(text, "file.json"); });
}

/// The message of reading "v" of { "v": value }.
std::string value_error(std::string_view value, const std::function<void(const JsonNode&)>& read) {
  const JsonNode node = JsonNode::parse(R"({ "v": )" + std::string(value) + " }", "file.json");
  return message_of<ConfigError>([&] { read(node.child("v")); });
}

TEST(JsonFileErrors, NameTheFile) {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& path) {
    return message_of<ConfigError>([&] { JsonNode::load(path); });
  };
  const std::string missing = (folder / "absent.json").string();
  EXPECT_THAT(message(missing), AllOf(StartsWith(missing + ": "), HasSubstr("No such file")));
  EXPECT_THAT(message(folder.path()), AllOf(StartsWith(folder.path().string() + ": "), HasSubstr("is a directory")));
  const auto empty = folder.add("empty.json", "");
  EXPECT_EQ(message(empty), empty.string() + ": the file is empty, expected JSON");
  EXPECT_THAT(message(folder.add("blank.json", " \n\t")), HasSubstr("the file is empty"));
}

TEST(JsonSyntaxErrors, NameLineAndColumn) {
  // The second comma, at column 10 of the second line.
  EXPECT_THAT(parse_error("{ \"a\": 1,\n  \"b\": 2,, }"), StartsWith("file.json: line 2, column 10: not valid JSON: "));
  EXPECT_THAT(parse_error("[1, 2"), StartsWith("file.json: line 1, column 6: not valid JSON: "));
  EXPECT_THAT(parse_error("{ \"a\": NaN }"), StartsWith("file.json: line 1, column 8: not valid JSON: "));
  EXPECT_THAT(parse_error("{ \"a\": Infinity }"), StartsWith("file.json: line 1, column 8: not valid JSON: "));
  EXPECT_THAT(parse_error("{}\n{}"), StartsWith("file.json: line 2, column 1: not valid JSON: "));
  EXPECT_THAT(parse_error("{ \"a\": \"\xff\" }"), StartsWith("file.json: line 1, column "));
  EXPECT_THAT(parse_error("{ \"a\": 1 "), Not(HasSubstr("json.exception")));
}

TEST(JsonSyntaxErrors, ANumberBeyondADoubleIsLocated) {
  EXPECT_EQ(parse_error(R"({ "a": [ 1, 1e999 ] })"), "file.json: /a/1: number overflow parsing '1e999'");
  EXPECT_EQ(parse_error(R"({ "a": { "b": -1e999 } })"), "file.json: /a/b: number overflow parsing '-1e999'");
}

// A file of a few hundred kilobytes could otherwise exhaust the stack, which no one can catch.
TEST(JsonNesting, HasALimit) {
  const auto nested = [](const std::string& open, const std::string& close, int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += "1";
    for (int i = 0; i < levels; ++i) text += close;
    return text;
  };
  const auto message = "file.json: found more than 200 levels of nesting, expected at most 200";
  JsonNode::parse(nested("[", "]", 200), "file.json");
  EXPECT_EQ(parse_error(nested("[", "]", 201)), message);
  EXPECT_EQ(parse_error(nested("[", "]", 200'000)), message);
  EXPECT_EQ(parse_error(nested(R"({ "a": )", "}", 200'000)), message);
  EXPECT_EQ(parse_error(nested("[", "", 200'000)), message);
}

TEST(JsonDuplicateKeys, AreRefusedWhereTheyStand) {
  EXPECT_EQ(parse_error(R"({ "a": 1, "a": 2 })"), "file.json: /a: duplicate key");
  EXPECT_EQ(parse_error(R"({ "o": { "p": { "a": 1, "a": 1 } } })"), "file.json: /o/p/a: duplicate key");
  EXPECT_EQ(parse_error(R"({ "l": [ 7, [], { "a": 1 }, { "b": 1, "b": 2 } ] })"), "file.json: /l/3/b: duplicate key");
  EXPECT_EQ(parse_error(R"([ [ { "x/y": 1, "x/y": 1 } ] ])"), "file.json: /0/0/x~1y: duplicate key");
  // After a nested object the outer one goes on.
  EXPECT_EQ(parse_error(R"({ "a": { "b": 1 }, "c": [ { "b": 2 } ], "a": 1 })"), "file.json: /a: duplicate key");
  // The same key in siblings is no duplicate.
  JsonNode::parse(R"({ "x": { "b": 1 }, "y": { "b": 1 }, "l": [ { "b": 1 }, { "b": 1 } ] })", "file.json");
}

TEST(JsonKeys, AnUnknownOneGetsTheNearest) {
  const auto finish = [](std::string_view text) {
    const JsonNode node = JsonNode::parse(text, "file.json");
    return message_of<ConfigError>([&] {
      JsonObject in(node.child("synchronization"));
      (void)in.optional("mode");
      (void)in.optional("scheme");
      in.finish();
    });
  };
  EXPECT_EQ(finish(R"({ "synchronization": { "sheme": "ring" } })"),
            "file.json: /synchronization/sheme: unknown key; did you mean \"scheme\"?");
  EXPECT_EQ(finish(R"({ "synchronization": { "scheem": "ring" } })"),
            "file.json: /synchronization/scheem: unknown key; did you mean \"scheme\"?");
  EXPECT_EQ(finish(R"({ "synchronization": { "colour": 1 } })"),
            "file.json: /synchronization/colour: unknown key; known here: \"mode\" or \"scheme\"");
}

// A message is whole although what it quotes holds a NUL, and it steers no terminal.
TEST(JsonKeys, AreShownWithTheirControlCharactersWrittenOut) {
  const auto finish = [](std::string_view text) {
    const JsonNode node = JsonNode::parse(text, "file.json");
    return message_of<ConfigError>([&] { JsonObject(node).finish(); });
  };
  EXPECT_EQ(finish(R"({ "a\u0000b\u001b": 1 })"), "file.json: /a\\u0000b\\u001b: unknown key; known here: nothing");
  EXPECT_EQ(message_of<ConfigError>([] { JsonNode::parse(R"({ "a\u0000": 1, "a\u0000": 2 })", "file.json"); }),
            "file.json: /a\\u0000: duplicate key");
}

TEST(JsonKeys, AMissingOneIsNamed) {
  const auto require = [](std::string_view text) {
    const JsonNode node = JsonNode::parse(text, "file.json");
    return message_of<ConfigError>([&] { JsonObject(node).required("seed"); });
  };
  EXPECT_EQ(require("{}"), "file.json: /: the key \"seed\" is missing");
  // More likely misspelt than forgotten.
  EXPECT_EQ(require(R"({ "sede": 1 })"), "file.json: /sede: unknown key; did you mean \"seed\"?");
  EXPECT_EQ(require(R"({ "workload": 1 })"), "file.json: /: the key \"seed\" is missing");
}

TEST(JsonKeys, OneOfTwoMustStandAlone) {
  const auto one_of = [](std::string_view text) {
    const JsonNode node = JsonNode::parse(text, "file.json");
    return message_of<ConfigError>([&] { JsonObject(node).one_of("gpu", "instance"); });
  };
  EXPECT_EQ(one_of("{}"), "file.json: /: expected \"gpu\" or \"instance\"");
  EXPECT_THAT(one_of(R"({ "gpu": 1, "instance": 2 })"), StartsWith("file.json: /instance: stands beside \"gpu\""));
}

TEST(JsonValues, AWrongTypeSaysWhatWasFoundAndExpected) {
  EXPECT_EQ(value_error("5", [](const JsonNode& v) { v.as_string(); }),
            "file.json: /v: found 5, expected a string that is not empty");
  EXPECT_THAT(value_error("\"\"", [](const JsonNode& v) { v.as_string(); }),
              HasSubstr("found \"\", expected a string"));
  EXPECT_THAT(value_error("1", [](const JsonNode& v) { v.as_bool(); }), HasSubstr("found 1, expected true or false"));
  EXPECT_THAT(value_error("{}", [](const JsonNode& v) { v.as_array(); }),
              HasSubstr("found an object, expected an array"));
  EXPECT_THAT(value_error("[1,2]", [](const JsonNode& v) { v.as_map(); }),
              HasSubstr("found an array of 2, expected an object"));
  EXPECT_THAT(value_error("[1,2]", [](const JsonNode& v) { JsonObject{v}; }), HasSubstr("expected an object"));
  EXPECT_THAT(value_error("null", [](const JsonNode& v) { v.as_number(0, 1); }), HasSubstr("found null, expected"));
  EXPECT_EQ(value_error("[0, 1, -1]", [](const JsonNode& v) { v.as_numbers(0, 1); }),
            "file.json: /v/2: found -1, expected a number from 0 to 1");
  EXPECT_THAT(value_error("[0, \"1\"]", [](const JsonNode& v) { v.as_numbers(0, 1); }), HasSubstr("/v/1: found \"1\""));
}

TEST(JsonValues, IntegersStayInTheirRange) {
  const auto integer = [](std::string_view value) {
    return value_error(value, [](const JsonNode& v) { v.as_integer(1, 65536); });
  };
  EXPECT_EQ(integer("-1"), "file.json: /v: found -1, expected an integer from 1 to 65536");
  EXPECT_THAT(integer("65537"), HasSubstr("found 65537"));
  EXPECT_THAT(integer("2.5"), HasSubstr("found 2.5"));
  EXPECT_THAT(integer("9223372036854775808"), HasSubstr("found 9223372036854775808"));    // 2^63
  EXPECT_THAT(integer("18446744073709551615"), HasSubstr("found 18446744073709551615"));  // 2^64 - 1
  EXPECT_THAT(integer("18446744073709551616"), HasSubstr("expected an integer"));         // 2^64
  EXPECT_THAT(integer("\"4\""), HasSubstr("found \"4\""));
}

TEST(JsonValues, ASeedHas64Bits) {
  const auto seed = [](std::string_view value) { return value_error(value, [](const JsonNode& v) { v.as_seed(); }); };
  EXPECT_THAT(seed("-1"), HasSubstr("found -1, expected an integer from 0 to 18446744073709551615"));
  EXPECT_THAT(seed("18446744073709551616"), HasSubstr("expected an integer from 0"));
  EXPECT_THAT(seed("1.5"), HasSubstr("found 1.5"));
}

TEST(JsonValues, QuantitiesCarryTheirUnit) {
  const auto seconds = [](std::string_view value) {
    return value_error(value, [](const JsonNode& v) { v.as_positive<Seconds>(); });
  };
  EXPECT_EQ(seconds("5"),
            "file.json: /v: found the bare number 5, expected a duration such as \"5us\": a quantity carries its unit");
  EXPECT_EQ(seconds("\"5\""), "file.json: /v: \"5\" has no unit; write for example \"5us\"");
  EXPECT_THAT(seconds("\"5GB\""), HasSubstr("has the unit \"GB\", which is none of ns, us"));
  EXPECT_THAT(seconds("\"nans\""), StartsWith("file.json: /v: "));
  EXPECT_THAT(seconds("\"0s\""), HasSubstr("found \"0s\", expected a duration such as \"5us\", above zero"));
  EXPECT_THAT(seconds("\"-1s\""), HasSubstr("not negative"));
  EXPECT_THAT(seconds("true"), HasSubstr("found true, expected a duration"));
  EXPECT_THAT(value_error("3", [](const JsonNode& v) { v.as_quantity<MicroUsdPerHour>(); }),
              HasSubstr("expected a price such as \"3.06USD/h\""));
}

TEST(JsonValues, AnUnknownChoiceGetsListAndNearest) {
  const auto choice = [](std::string_view value) {
    return value_error(value, [](const JsonNode& v) { v.as_choice({"ring", "reduce-to-one"}); });
  };
  EXPECT_EQ(choice("\"rign\""),
            "file.json: /v: found \"rign\", expected \"ring\" or \"reduce-to-one\"; did you mean \"ring\"?");
  EXPECT_EQ(choice("\"butterfly\""), "file.json: /v: found \"butterfly\", expected \"ring\" or \"reduce-to-one\"");
  EXPECT_EQ(choice("3"), "file.json: /v: found 3, expected \"ring\" or \"reduce-to-one\"");
}

TEST(JsonValues, TheSchemaIsChecked) {
  const auto check = [](std::string_view text) {
    return message_of<ConfigError>([&] {
      JsonObject in(JsonNode::parse(text, "file.json"));
      check_schema(in, "ganymede.scenario/1");
    });
  };
  EXPECT_EQ(check("{}"), "file.json: /: the key \"schema\" is missing");
  EXPECT_EQ(check(R"({ "schema": "ganymede.scenario/2" })"),
            "file.json: /schema: found \"ganymede.scenario/2\", expected \"ganymede.scenario/1\"");
  EXPECT_THAT(check(R"({ "schema": 1 })"), HasSubstr("found 1, expected \"ganymede.scenario/1\""));
}

}  // namespace
}  // namespace ganymede
