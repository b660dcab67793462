#include "common/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede {
namespace {

using namespace literals;
using testing::ElementsAre;

JsonNode parse(std::string_view text) { return JsonNode::parse(text, "file.json"); }

TEST(Json, ReadsEachKindOfValue) {
  JsonObject in(parse(R"({ "text": "abc", "yes": true, "count": -3, "seed": 18446744073709551615, "share": 0.25,
                           "list": [1, 2.5], "time": "5us", "none": "0B" })"));
  EXPECT_EQ(in.required("text").as_string(), "abc");
  EXPECT_TRUE(in.required("yes").as_bool());
  EXPECT_EQ(in.required("count").as_integer(-3, 5), -3);
  EXPECT_EQ(in.required("seed").as_seed(), UINT64_MAX);
  EXPECT_EQ(in.required("share").as_number(0, 1), 0.25);
  EXPECT_THAT(in.required("list").as_numbers(0, 10), ElementsAre(1, 2.5));
  EXPECT_EQ(in.required("time").as_positive<Seconds>(), 5_us);
  EXPECT_EQ(in.required("none").as_quantity<Bytes>(), 0_B);
  EXPECT_FALSE(in.optional("absent").has_value());
  in.finish();
}

TEST(Json, IntegersReachTheEndsOf64Bits) {
  EXPECT_EQ(parse("9223372036854775807").as_integer(INT64_MIN, INT64_MAX), INT64_MAX);
  EXPECT_EQ(parse("-9223372036854775808").as_integer(INT64_MIN, INT64_MAX), INT64_MIN);
}

TEST(Json, AllowsComments) {
  JsonObject in(parse("// first\n{ \"a\": 1, // the \"a\"\n  \"b\": \"// no comment\" }\n// last"));
  EXPECT_EQ(in.required("a").as_integer(0, 1), 1);
  EXPECT_EQ(in.required("b").as_string(), "// no comment");
}

TEST(Json, PointersAreEscaped) {
  // RFC 6901: "~" is written "~0" and "/" is written "~1".
  const JsonNode node = parse(R"({ "a/b": { "m~n": [ 0, { "": 1 } ] } })");
  EXPECT_EQ(node.pointer(), "/");
  EXPECT_EQ(node.child("a/b").pointer(), "/a~1b");
  EXPECT_EQ(node.child("a/b").child("m~n").pointer(), "/a~1b/m~0n");
  EXPECT_EQ(node.child("a/b").child("m~n").as_array()[1].child("").pointer(), "/a~1b/m~0n/1/");
}

// With the library's callbacks each element looked through all before it: this took some minutes.
TEST(Json, LongArraysAreReadInOnePass) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += R"({"at":1},)";
  const JsonNode node = parse(text + "2]");
  EXPECT_EQ(node.value().size(), 300'001U);
  EXPECT_EQ(node.value().back(), 2);
}

TEST(Json, MapsAreSortedByKey) {
  std::vector<std::string> seen;
  for (const auto& [key, value] : parse(R"({ "b": 2, "a": 1 })").as_map())
    seen.push_back(key + value.pointer() + std::to_string(value.as_integer(0, 9)));
  EXPECT_THAT(seen, ElementsAre("a/a1", "b/b2"));
}

TEST(Json, OneOfTakesEither) {
  JsonObject a(parse(R"({ "gpu": "V100" })"));
  EXPECT_EQ(a.one_of("gpu", "instance").as_string(), "V100");
  JsonObject b(parse(R"({ "instance": "x" })"));
  EXPECT_EQ(b.one_of("gpu", "instance").pointer(), "/instance");
}

TEST(Json, AsChoiceGivesTheName) { EXPECT_EQ(parse("\"ring\"").as_choice({"tree", "ring"}), "ring"); }

TEST(Nearest, FindsMisspeltWords) {
  const std::vector<std::string> known = {"scheme", "mode", "overlap", "compression"};
  EXPECT_EQ(nearest("sheme", known), "scheme");    // a letter missing
  EXPECT_EQ(nearest("schemes", known), "scheme");  // one too many
  EXPECT_EQ(nearest("schame", known), "scheme");   // a wrong one
  EXPECT_EQ(nearest("shceme", known), "scheme");   // two swapped
  EXPECT_EQ(nearest("mdoe", known), "mode");       // swapped: one edit, though half of the letters are off
  EXPECT_EQ(nearest("compresion", known), "compression");
  EXPECT_EQ(nearest("bandwidth", known), std::nullopt);
  EXPECT_EQ(nearest("scheme", {}), std::nullopt);
}

TEST(ListOf, ReadsLikeASentence) {
  EXPECT_EQ(list_of({"a"}), "\"a\"");
  EXPECT_EQ(list_of({"a", "b"}), "\"a\" or \"b\"");
  EXPECT_EQ(list_of({"a", "b", "c"}), "\"a\", \"b\" or \"c\"");
}

class JsonFile : public testing::Test {
 protected:
  JsonNode load(const std::vector<JsonOverride>& overrides) const {
    return JsonNode::load(folder_.add("in.json", R"({ "seed": 1, "workload": { "trace": "t.json", "steps": 5 },
                                                      "gpus": [1, 2] })"),
                          overrides);
  }
  TemporaryFolder folder_;
};

TEST_F(JsonFile, RelativePathsStartAtTheFile) {
  const JsonNode node = load({});
  EXPECT_EQ(node.file(), (folder_ / "in.json").string());
  EXPECT_EQ(node.child("workload").child("trace").directory(), folder_.path());
}

TEST_F(JsonFile, AnOverrideReplacesAValue) {
  const JsonNode node = load({{"/seed", "7"}, {"/workload/trace", "other.json"}, {"/gpus/1", "8"}});
  EXPECT_EQ(node.child("seed").as_seed(), 7U);
  EXPECT_EQ(node.child("workload").child("trace").as_string(), "other.json");
  EXPECT_THAT(node.child("gpus").as_numbers(0, 10), ElementsAre(1, 8));
}

TEST_F(JsonFile, AnOverrideAddsAValueOfAnyKind) {
  const JsonNode node = load({{"/policy/name", "fixed"}, {"/fidelity", R"({ "mode": "message" })"}, {"/gpus/-", "4"}});
  EXPECT_EQ(node.child("policy").child("name").as_string(), "fixed");
  EXPECT_EQ(node.child("fidelity").child("mode").as_string(), "message");
  EXPECT_THAT(node.child("gpus").as_numbers(0, 10), ElementsAre(1, 2, 4));
}

// On the command line a path starts at the working directory.
TEST_F(JsonFile, AnOverrideWithNullRemovesWhatIsThere) {
  using testing::HasSubstr;
  const auto left = [&](const std::string& pointer) {
    return JsonNode::parse(R"({ "workload": { "steps": 3, "epochs": null }, "list": [1, 2, 3] })", "file",
                           {{pointer, "null"}})
        .value()
        .dump();
  };
  EXPECT_EQ(left("/workload/steps"), R"({"list":[1,2,3],"workload":{"epochs":null}})");
  EXPECT_EQ(left("/workload/epochs"), R"({"list":[1,2,3],"workload":{"steps":3}})");
  EXPECT_EQ(left("/workload"), R"({"list":[1,2,3]})");
  EXPECT_EQ(left("/list/1"), R"({"list":[1,3],"workload":{"epochs":null,"steps":3}})");
  for (const char* absent : {"/workload/step", "/steps", "/list/3", "/list/-", "/workload/steps/x"})
    EXPECT_THAT(message_of<ConfigError>([&] { left(absent); }), HasSubstr("--set " + std::string(absent) + "=null"));
}

TEST_F(JsonFile, RelativePathsOfAnOverrideStartAtTheWorkingDirectory) {
  const JsonNode node = load({{"/workload/trace", "other.json"}});
  EXPECT_EQ(node.child("workload").child("trace").directory(), "");
  EXPECT_EQ(node.child("workload").child("steps").directory(), folder_.path());
  const JsonNode whole = load({{"/workload", R"({ "trace": "x.json" })"}});
  EXPECT_EQ(whole.child("workload").child("trace").directory(), "");
}

TEST_F(JsonFile, AnOverrideThatPointsNowhereSaysSo) {
  const auto message = [&](const char* pointer) { return message_of<ConfigError>([&] { load({{pointer, "1"}}); }); };
  using testing::AllOf;
  using testing::HasSubstr;
  using testing::Not;
  const auto tells = [](const char* start) {
    return AllOf(testing::StartsWith(start), Not(HasSubstr("json.exception")));
  };
  EXPECT_THAT(message("seed"), AllOf(tells("--set seed=1: "), HasSubstr("must be empty or begin with '/'")));
  EXPECT_THAT(message("/seed/x"), AllOf(tells("--set /seed/x=1: "), HasSubstr("'x'")));
  EXPECT_THAT(message("/gpus/first"), tells("--set /gpus/first=1: "));
}

// Everything in between would have to be invented, and a large index would exhaust memory.
TEST_F(JsonFile, AnOverrideLeavesNoGapInAnArray) {
  const auto message = [&](const std::string& pointer) {
    return message_of<ConfigError>([&] { load({{pointer, "1"}}); });
  };
  EXPECT_EQ(message("/gpus/3"),
            "--set /gpus/3=1: found the index 3, expected at most 2: the array has no more elements");
  EXPECT_THAT(message("/gpus/2000000000"), testing::StartsWith("--set /gpus/2000000000=1: found the index 2000000000"));
  EXPECT_THAT(message("/gpus/99999999999999999999"), testing::HasSubstr("expected at most 2"));
  EXPECT_THAT(message("/gpus/2000000000/x"), testing::HasSubstr("expected at most 2"));
  EXPECT_THAT(message("/absent/2000000000"), testing::HasSubstr("expected at most 0"));
  EXPECT_THAT(load({{"/gpus/2", "4"}}).child("gpus").as_numbers(0, 10), ElementsAre(1, 2, 4));
  EXPECT_THAT(load({{"/absent/0", "4"}}).child("absent").as_numbers(0, 10), ElementsAre(4));
}

TEST_F(JsonFile, AnOverrideIsReadAsStrictlyAsAFile) {
  using testing::HasSubstr;
  using testing::StartsWith;
  const auto message = [&](const std::string& pointer, const std::string& value) {
    return message_of<ConfigError>([&] { load({{pointer, value}}); });
  };
  EXPECT_THAT(message("/policy/name", "\xff"), testing::AllOf(StartsWith("--set /policy/name="), HasSubstr("UTF-8")));
  EXPECT_THAT(message("/policy/name", "\"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(message("/policy/\xff", "1"), HasSubstr("UTF-8"));
  EXPECT_EQ(message("/policy", R"({ "a": 1, "a": 2 })"), "--set /policy: /a: duplicate key");
  EXPECT_THAT(message("/policy", std::string(100'000, '[')), StartsWith("--set /policy: found more than 200 levels"));
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "/a";
  EXPECT_THAT(message(deep, "1"), HasSubstr("more than 200 levels"));
}

}  // namespace
}  // namespace ganymede
