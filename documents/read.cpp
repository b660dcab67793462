// Reading a document from JSON.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

class Reader final : public Walk {
 public:
  Reader(const JsonNode& node, const Reading& how) : how_(how), values_{node} {}

  void derived(std::string_view name, double, const About&) override { (void)objects_.back().optional(name); }
  void constant(std::string_view name, const OrderedJson&, const About&) override {
    (void)objects_.back().optional(name);
  }
  bool reads() const override { return true; }
  void refuse(std::string_view place, std::string_view why) override { at(place).fail(why); }
  void expect(std::string_view place, std::string_view expected) override { at(place).expected(expected); }
  void expect_choice(std::string_view place, const std::vector<std::string>& names) override {
    (void)at(place).as_choice(names);
  }

 protected:
  // The value that is being read is the last of `values_`; `objects_` are those that it is in.
  bool enter_member(std::string_view name, const About& about, bool) override {
    JsonObject& object = objects_.back();
    std::optional<JsonNode> found = object.optional(name);
    if (!found && about.required) {
      if (how_.again.empty()) (void)object.required(name);
      object.node().fail(fmt::format("is not whole, \"{}\" is missing; {}", name, how_.again));
    }
    if (!found) return false;
    values_.push_back(std::move(*found));
    return true;
  }
  void leave_member() override { values_.pop_back(); }
  bool enter_object(std::string_view, const About&) override {
    objects_.emplace_back(values_.back());
    return true;
  }
  void leave_object() override {
    if (how_.strict) objects_.back().finish();
    objects_.pop_back();
  }
  bool enter_nullable(bool) override { return !values_.back().value().is_null(); }
  void leave_nullable() override {}
  std::size_t enter_list(std::size_t size, bool row) override {
    lists_.push_back(values_.back().as_array());
    const std::size_t found = lists_.back().size();
    if (row && found != size) values_.back().expected(fmt::format("{} cells", size));
    return found;
  }
  void enter_element(std::size_t index) override { values_.push_back(lists_.back()[index]); }
  void leave_element() override { values_.pop_back(); }
  void leave_list() override { lists_.pop_back(); }
  void at_least_one(bool empty, std::string_view what) override {
    if (empty) values_.back().expected(fmt::format("at least one {}", what));
  }
  std::vector<std::string> enter_map(std::vector<std::string>) override {
    std::vector<std::string> names;
    for (const auto& entry : values_.back().as_map()) names.push_back(entry.first);
    return names;
  }
  void enter_entry(std::string_view name) override { values_.push_back(values_.back().child(name)); }
  void leave_entry() override { values_.pop_back(); }

  void integer(std::int64_t& value, const About& about, std::int64_t most) override {
    constexpr double kExact = 9e15;  // a bound beyond this is none
    const auto bound = [&](double at, std::int64_t otherwise) {
      return std::abs(at) < kExact ? static_cast<std::int64_t>(at) : otherwise;
    };
    value = values_.back().as_integer(bound(about.low, -most), bound(about.high, most));
  }
  void leaf(double& value, const About& about) override { value = number(values_.back(), about); }
  void leaf(bool& value, const About&) override { value = values_.back().as_bool(); }
  void leaf(std::uint64_t& value, const About&) override { value = values_.back().as_seed(); }
  void leaf(std::string& value, const About& about) override {
    const JsonNode& node = values_.back();
    if (!about.choices.empty() && how_.strict)  // a newer program may have more words
      value = node.as_choice({about.choices.begin(), about.choices.end()});
    else if (about.filled)
      value = node.as_string();
    else if (node.is_string())
      value = node.value().as_string();  // which may be empty
    else
      node.expected("a text");
  }
  void leaf(MicroUsd& value, const About&) override { value = {std::llround(dollars(values_.back()) * 1e6)}; }
  void leaf(MicroUsdPerHour& value, const About&) override { value = {std::llround(dollars(values_.back()) * 1e6)}; }
  void leaf(Interval& value, const About& about) override {
    const std::vector<JsonNode> found = pair();
    value = {number(found[0], about), number(found[1], about)};
  }
  void leaf(UsdInterval& value, const About&) override {
    const std::vector<JsonNode> found = pair();
    value = {dollars(found[0], true), dollars(found[1], true)};
  }
  void leaf(std::vector<double>& value, const About& about) override {
    value = values_.back().as_numbers(std::max(about.low, -kMost), std::min(about.high, kMost));
  }
  void with_unit(Seconds& value) override { value = values_.back().as_positive<Seconds>(); }
  void with_unit(Bytes& value) override { value = values_.back().as_positive<Bytes>(); }
  void with_unit(BytesPerSecond& value) override { value = values_.back().as_positive<BytesPerSecond>(); }
  void with_unit(FlopsPerSecond& value) override { value = values_.back().as_positive<FlopsPerSecond>(); }
  void leaf(JsonText& value, const About&) override { value.text = values_.back().value().dump(); }

 private:
  std::vector<JsonNode> pair() const {
    std::vector<JsonNode> found = values_.back().as_array();
    if (found.size() != 2) values_.back().expected("two values: the low and the high end");
    return found;
  }
  static double number(const JsonNode& node, const About& about) {
    if (about.unknown_is_null && node.value().is_null()) return std::numeric_limits<double>::quiet_NaN();
    const double value = node.as_number(std::max(about.low, -kMost), std::min(about.high, kMost));
    if (about.above_low && value <= about.low) node.expected(fmt::format("a number above {:g}", about.low));
    return value;
  }
  /// An amount, as a decimal text; old results have numbers. A text "inf" stands for no price.
  static double dollars(const JsonNode& node, bool may_be_infinite = false) {
    if (node.is_number()) return node.as_number(-kMostUsd, kMostUsd);
    const std::string text = node.as_string();
    char* end = nullptr;
    const double amount = std::strtod(text.c_str(), &end);
    const bool bad = *end != '\0' || !(std::abs(amount) <= kMostUsd);
    if (bad && !(may_be_infinite && *end == '\0')) node.expected("an amount of dollars such as \"12.34\"");
    return amount;
  }
  /// The value at that path below the object whose members are read.
  JsonNode at(std::string_view place) const {
    JsonNode node = objects_.back().node();
    for (std::size_t from = 0; from < place.size();) {
      const std::size_t end = std::min(place.find('/', from), place.size());
      const std::string step(place.substr(from, end - from));
      node = node.is_object() ? node.child(step) : node.as_array().at(std::stoul(step));
      from = end + 1;
    }
    return node;
  }
  static constexpr double kMost = std::numeric_limits<double>::max();
  static constexpr double kMostUsd = 9e12;  // micro-dollars in 64 bits

  Reading how_;
  std::vector<JsonNode> values_;
  std::vector<JsonObject> objects_;
  std::vector<std::vector<JsonNode>> lists_;
};

}  // namespace

void read(const JsonNode& node, const Description& description, const Reading& how) {
  Reader reader(node, how);
  description(reader);
}

}  // namespace ganymede::documents
