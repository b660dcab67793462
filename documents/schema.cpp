// The JSON Schema of a document.

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

class SchemaWriter final : public Walk {
 public:
  explicit SchemaWriter(bool strict) : strict_(strict) {}

  OrderedJson take() { return std::move(stack_.front()); }
  OrderedJson definitions() { return std::move(definitions_); }

  void derived(std::string_view name, double, const About& about) override {
    About number = about;
    double value = 0;
    member(name, value, number);
  }
  void constant(std::string_view name, const OrderedJson& value, const About& about) override {
    if (!enter_member(name, about, true)) return;
    if (value.is_string())
      stack_.back() = {{"const", value}};
    else
      stack_.back() = {{"type", "array"}, {"items", {{"type", "string"}}}};
    leave_member();
  }

 protected:
  bool enter_member(std::string_view name, const About& about, bool) override {
    if (about.required && kinds_ == 0) required_.back().emplace_back(name);
    names_.emplace_back(name);
    says_.push_back(about.says);
    stack_.emplace_back();
    return true;
  }
  void leave_member() override {
    OrderedJson value = pop();
    if (!says_.back().empty()) value["description"] = says_.back();
    stack_.back()["properties"][names_.back()] = std::move(value);
    names_.pop_back();
    says_.pop_back();
  }
  bool enter_object(std::string_view type, const About&) override {
    if (!type.empty() && !stack_.empty()) {
      const bool known = definitions_.contains(type) || open_.contains(type);
      if (known) {
        stack_.back() = reference(type);
        return false;
      }
      open_.insert(type);
    }
    types_.push_back(type);
    required_.emplace_back();
    stack_.push_back({{"type", "object"}, {"properties", OrderedJson::object()}});
    return true;
  }
  void leave_object() override {
    OrderedJson object = pop();
    if (!required_.back().empty()) object["required"] = required_.back();
    if (strict_) object["additionalProperties"] = false;
    if (types_.back().empty()) {
      stack_.back() = std::move(object);
    } else {
      definitions_[types_.back()] = std::move(object);
      stack_.back() = reference(types_.back());
    }
    required_.pop_back();
    types_.pop_back();
  }
  bool enter_nullable(bool) override { return true; }
  void leave_nullable() override {
    OrderedJson& value = stack_.back();
    if (value.contains("type") && value["type"].is_string() && value["type"] != "object")
      value["type"] = {value["type"], "null"};
    else
      value = {{"anyOf", OrderedJson::array({{{"type", "null"}}, value})}};
  }
  std::size_t enter_list(std::size_t size, bool row) override {
    lists_.push_back(row ? size : 0);
    return row ? size : 1;
  }
  void enter_element(std::size_t) override { stack_.emplace_back(); }
  void leave_element() override {
    OrderedJson element = pop();
    const std::size_t cells = lists_.back();
    if (cells > 0) element = {{"type", "number"}};  // draft 7 has no short way to say what each cell is
    stack_.back() = {{"type", "array"}, {"items", std::move(element)}};
    if (cells > 0) stack_.back()["minItems"] = stack_.back()["maxItems"] = cells;
  }
  void leave_list() override { lists_.pop_back(); }
  void at_least_one(bool, std::string_view) override { stack_.back()["minItems"] = 1; }
  std::vector<std::string> enter_map(std::vector<std::string>) override { return {"name"}; }
  void enter_entry(std::string_view) override { stack_.emplace_back(); }
  void leave_entry() override {
    OrderedJson element = pop();
    stack_.back() = {{"type", "object"}, {"additionalProperties", std::move(element)}};
  }
  bool enter_kind(bool) override {
    ++kinds_;
    return true;
  }
  void leave_kind() override { --kinds_; }

  void integer(std::int64_t&, const About& about, std::int64_t) override { bounded("integer", about); }
  void leaf(double&, const About& about) override { bounded("number", about); }
  void leaf(bool&, const About&) override { stack_.back() = {{"type", "boolean"}}; }
  void leaf(std::uint64_t&, const About&) override { stack_.back() = {{"type", "integer"}, {"minimum", 0}}; }
  void leaf(std::string&, const About& about) override {
    stack_.back() = about.choices.empty() ? OrderedJson{{"type", "string"}} : OrderedJson{{"enum", about.choices}};
    if (about.filled) stack_.back()["minLength"] = 1;
  }
  void leaf(MicroUsd&, const About&) override { decimal_text(); }
  void leaf(MicroUsdPerHour&, const About&) override { decimal_text(); }
  void leaf(Interval&, const About& about) override {
    bounded("number", about);
    pair();
  }
  void leaf(UsdInterval&, const About&) override {
    stack_.back() = {{"type", "string"}};
    pair();
  }
  void leaf(std::vector<double>&, const About& about) override {
    bounded("number", about);
    OrderedJson element = pop();
    stack_.push_back({{"type", "array"}, {"items", std::move(element)}});
  }
  void with_unit(Seconds&) override { quantity("5us"); }
  void with_unit(Bytes&) override { quantity("64MiB"); }
  void with_unit(BytesPerSecond&) override { quantity("25GB/s"); }
  void with_unit(FlopsPerSecond&) override { quantity("15.7Tflop/s"); }
  void leaf(JsonText&, const About& about) override {
    stack_.back() = about.unknown_is_null ? OrderedJson::object() : OrderedJson{{"type", "object"}};
  }

 private:
  static OrderedJson reference(std::string_view type) { return {{"$ref", fmt::format("#/definitions/{}", type)}}; }
  void quantity(const char* example) {
    stack_.back() = {{"type", "string"}, {"pattern", "^[0-9.]"}, {"examples", {example}}};
  }
  void decimal_text() {
    if (!definitions_.contains("decimal"))
      definitions_["decimal"] = {{"type", "string"}, {"pattern", R"(^-?[0-9]+\.[0-9]{2,6}$)"}};
    stack_.back() = reference("decimal");
  }
  void bounded(const char* type, const About& about) {
    OrderedJson& out = stack_.back();
    out = {{"type", about.unknown_is_null ? OrderedJson{type, "null"} : OrderedJson(type)}};
    const auto bound = [&](const char* name, double at) {
      if (!std::isfinite(at)) return;
      if (at == std::floor(at) && std::abs(at) < 9e15)
        out[name] = static_cast<std::int64_t>(at);
      else
        out[name] = at;
    };
    bound(about.above_low ? "exclusiveMinimum" : "minimum", about.low);
    bound("maximum", about.high);
  }
  void pair() {
    OrderedJson element = pop();
    stack_.push_back({{"type", "array"}, {"items", std::move(element)}, {"minItems", 2}, {"maxItems", 2}});
  }
  OrderedJson pop() {
    OrderedJson value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }

  bool strict_;
  int kinds_ = 0;  // so many kinds() are open, whose members not every object has
  std::vector<OrderedJson> stack_ = std::vector<OrderedJson>(1);
  std::vector<std::string> names_;
  std::vector<std::string_view> says_, types_;
  std::vector<std::vector<std::string>> required_;
  std::vector<std::size_t> lists_;  // the cells of a row; 0 for a list
  OrderedJson definitions_ = OrderedJson::object();
  std::set<std::string_view> open_;
};

}  // namespace

OrderedJson schema_of(const Description& description, std::string_view title, std::string_view says, bool strict) {
  SchemaWriter writer(strict);
  description(writer);
  OrderedJson out = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}, {"description", says}};
  out.update(writer.take());
  if (OrderedJson definitions = writer.definitions(); !definitions.empty()) out["definitions"] = definitions;
  return out;
}

}  // namespace ganymede::documents
