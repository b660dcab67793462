// Json and OrderedJson, beside nlohmann/json's own values: the same texts, pointers, patches and orders.

#include "common/json_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace ganymede {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// A random document as text, of at most `levels` levels. Some keys recur, in other orders.
std::string document(int levels) {
  const int kind = *rc::gen::inRange(0, levels > 0 ? 9 : 7);
  const auto text = [] {
    return nlohmann::json(*rc::gen::element<std::string>("", "a", "b/c", "~", "é\u2028", "line\nend\x01", "\"\\"))
        .dump();
  };
  switch (kind) {
    case 0:
      return *rc::gen::element<std::string>("null", "true", "false");
    case 1:
      return std::to_string(*rc::gen::arbitrary<std::int64_t>());
    case 2:
      return std::to_string(*rc::gen::arbitrary<std::uint64_t>());
    case 3:
      return nlohmann::json(*rc::gen::arbitrary<double>()).dump();
    case 4:
      return *rc::gen::element<std::string>("-0.0", "1e300", "1.0", "0.1", "5e-324", "-0", "1E5");
    case 5:
    case 6:
      return text();
    default:
      break;
  }
  std::string parts;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i)
    parts += (parts.empty() ? "" : ", ") + (kind == 7 ? "" : text() + ": ") + document(levels - 1);
  return kind == 7 ? "[" + parts + "]" : "{" + parts + "}";
}

RC_GTEST_PROP(JsonValues, AreWrittenAsTheLibraryWritesThem, ()) {
  const std::string text = document(4);
  RC_ASSERT(Json::parse(text).dump() == nlohmann::json::parse(text).dump());
  RC_ASSERT(Json::parse(text).dump(2) == nlohmann::json::parse(text).dump(2));
  RC_ASSERT(OrderedJson::parse(text).dump(1) == nlohmann::ordered_json::parse(text).dump(1));
  RC_ASSERT(OrderedJson::parse(text).dump_ascii() == nlohmann::ordered_json::parse(text).dump(-1, ' ', true));
  RC_ASSERT(Json(OrderedJson::parse(text)) == Json::parse(text));
}

RC_GTEST_PROP(JsonValues, AreComparedAndPatchedAsTheLibraryDoes, ()) {
  const std::string one = document(3), other = document(3);
  Json patched = Json::parse(one);
  auto expected = nlohmann::json::parse(one);
  RC_ASSERT((patched == Json::parse(other)) == (expected == nlohmann::json::parse(other)));
  patched.merge_patch(Json::parse(other));
  expected.merge_patch(nlohmann::json::parse(other));
  RC_ASSERT(patched.dump() == expected.dump());
}

/// The pointers to a value and to all below it.
void pointers_in(const nlohmann::json& value, const std::string& at, std::vector<std::string>& found) {
  found.push_back(at);
  if (!value.is_structured()) return;
  for (const auto& [key, below] : value.items()) {
    const std::string step = (nlohmann::json::json_pointer() / key).to_string();
    pointers_in(below, at + step, found);
  }
}

RC_GTEST_PROP(JsonValues, ArePointedAtAsByTheLibrary, ()) {
  const std::string text = document(4);
  const auto expected = nlohmann::json::parse(text);
  Json value = Json::parse(text);
  std::vector<std::string> found;
  pointers_in(expected, "", found);
  for (const std::string& at : found) {
    RC_ASSERT(JsonPointer(at).to_string() == at);
    RC_ASSERT(value.contains(JsonPointer(at)));
    RC_ASSERT(value.at(JsonPointer(at)).dump() == expected.at(nlohmann::json::json_pointer(at)).dump());
    RC_ASSERT(!value.contains(JsonPointer(at) / "nothing"));
  }
  const std::string& changed = *rc::gen::elementOf(found);
  value[JsonPointer(changed)] = 7;
  auto other = expected;
  other[nlohmann::json::json_pointer(changed)] = 7;
  RC_ASSERT(value.dump() == other.dump());
}

TEST(JsonValues, KeepTheOrderInWhichMembersWereAdded) {
  OrderedJson row = {{"z", 1}, {"a", {2, 3}}};
  row["m"] = OrderedJson::object();
  row["z"] = nullptr;
  EXPECT_EQ(row.dump(), R"({"z":null,"a":[2,3],"m":{}})");
  EXPECT_EQ(Json(row).dump(), R"({"a":[2,3],"m":{},"z":null})");
  row.erase("a");
  EXPECT_EQ(row.dump(), R"({"z":null,"m":{}})");
}

TEST(JsonValues, AreMadeOfListsMapsAndPairs) {
  const std::map<std::string, double> shares{{"b", 0.5}, {"a", 1}};
  EXPECT_EQ(Json(shares).dump(), R"({"a":1.0,"b":0.5})");
  EXPECT_EQ(Json(std::vector<std::string>{"x", "y"}).dump(), R"(["x","y"])");
  EXPECT_EQ(Json(std::pair(1, "one")).dump(), R"([1,"one"])");
  EXPECT_EQ((Json{{"a", "b"}}).dump(), R"({"a":"b"})");
  EXPECT_EQ((Json{{"a", "b"}, 3}).dump(), R"([["a","b"],3])");
  EXPECT_EQ(Json::array({"a", "b"}).dump(), R"(["a","b"])");
}

TEST(JsonValues, AddWhatIsMissingOnTheWayOfAPointer) {
  Json value;
  value[JsonPointer("/list/0/name")] = "first";
  value[JsonPointer("/list/-")] = 2;
  EXPECT_EQ(value.dump(), R"({"list":[{"name":"first"},2]})");
}

TEST(JsonValues, LeaveNoGapInAnArray) {
  Json value = {{"list", {1, 2}}};
  for (const char* at : {"/list/3", "/list/18446744073709551615", "/list/00", "/list/99999999999999999999", "/new/1"})
    EXPECT_THROW(value[JsonPointer(at)] = 0, JsonError) << at;
  EXPECT_EQ(value["list"].dump(), "[1,2]");
}

TEST(JsonValues, AreOrderedByTheirExactNumbers) {
  constexpr std::int64_t kBeyondDouble = (std::int64_t{1} << 53) + 1;
  EXPECT_LT(Json(kBeyondDouble - 1), Json(kBeyondDouble));
  EXPECT_GT(Json(UINT64_MAX), Json(-1));
  EXPECT_LT(Json(-1), Json(UINT64_MAX));
  EXPECT_LT(Json(1), Json(1.5));
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()) < Json(1), false);
  EXPECT_EQ(Json(-0x1p63).get<std::int64_t>(), INT64_MIN);
  EXPECT_THROW(Json(0x1p63).get<std::int64_t>(), JsonError);
  EXPECT_THROW((void)(Json("2") < Json(3)), JsonError);
}

TEST(JsonValues, ThatAreNullStayNullWhereNothingIsErased) {
  Json value;
  EXPECT_EQ(value.erase("x"), 0U);
  EXPECT_TRUE(value.is_null());
}

TEST(JsonValues, SayWhatIsWrongWithThem) {
  const Json value = Json::parse(R"({"text": "x", "list": [1]})");
  EXPECT_THAT([&] { value.at("absent"); }, ThrowsMessage<JsonError>(HasSubstr("absent")));
  EXPECT_THAT([&] { value.at("list").at(1); }, ThrowsMessage<JsonError>(HasSubstr("1")));
  EXPECT_THAT([&] { value.at("text").get<double>(); }, ThrowsMessage<JsonError>(HasSubstr("string")));
  EXPECT_THAT([&] { value.at("text").at("further"); }, ThrowsMessage<JsonError>(HasSubstr("string")));
  EXPECT_THAT([] { Json::parse("{\"a\": 1,}"); }, ThrowsMessage<JsonError>(HasSubstr("line 1")));
  EXPECT_THAT([] { Json("\xff").dump(); }, ThrowsMessage<JsonError>(HasSubstr("UTF-8")));
  EXPECT_EQ(Json("\xff").dump_replacing(), "\"\uFFFD\"");
  EXPECT_TRUE(Json::parse_or_null("{").is_null());
  for (const char* wrong : {"a", "/~2", "/~"}) EXPECT_THROW(JsonPointer{wrong}, JsonError) << wrong;
}

TEST(JsonValues, NestAtMost200Levels) {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(Json::parse(nested(200)).dump(), nested(200));
  EXPECT_THAT([&] { Json::parse(nested(201)); }, ThrowsMessage<JsonError>(HasSubstr("more than 200 levels")));
  EXPECT_TRUE(Json::parse_or_null(nested(201)).is_null());
}

}  // namespace
}  // namespace ganymede
