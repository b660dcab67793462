#include "common/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/file.hpp"
#include "common/json_parse.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "common/text.hpp"

namespace ganymede {

struct JsonNode::Document {
  std::string name;
  std::filesystem::path directory;
  std::vector<std::string> overridden;  // JSON pointers of the values that overrides have set
  Json content;
};

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

/// The value as text, shortened for a message.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = value.dump_replacing();
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

/// The least and the largest value of a quantity, in SI units (prices: micro-dollars per hour), and the words of
/// messages for what was expected. The largest is far above any machine, price or run: a larger number is a typing
/// error, and sums of such numbers would overflow. The least is that of a quantity that must be above zero.
struct QuantityRange {
  std::string_view expected;
  double low = 1, high = 1e18;
};
template <class Q>
constexpr QuantityRange kRange = {};
template <>
constexpr QuantityRange kRange<Seconds> = {"a duration such as \"5us\"", 1e-9, 1e8};  // three years
template <>
constexpr QuantityRange kRange<Bytes> = {"a size such as \"64MiB\""};
template <>
constexpr QuantityRange kRange<BytesPerSecond> = {"a bandwidth such as \"25Gbit/s\""};
template <>
constexpr QuantityRange kRange<FlopsPerSecond> = {"a compute rate such as \"15.7Tflop/s\"", 1, 1e21};
template <>
constexpr QuantityRange kRange<Watts> = {"a power such as \"300W\"", 1e-3, 1e9};
template <>
constexpr QuantityRange kRange<GramsPerKwh> = {"a carbon intensity such as \"400g/kWh\"", 1e-3, 1e5};
template <>
constexpr QuantityRange kRange<MicroUsdPerHour> = {"a price such as \"3.06USD/h\""};

template <class Unit>
double magnitude(Quantity<Unit> quantity) {
  return quantity.si;
}
double magnitude(MicroUsdPerHour price) { return static_cast<double>(price.value); }

}  // namespace

JsonNode::JsonNode(std::shared_ptr<const Document> document, const Json* value, std::string pointer)
    : document_(std::move(document)), value_(value), pointer_(std::move(pointer)) {}

JsonNode JsonNode::load(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  auto document = std::make_shared<Document>();
  document->name = file.string();
  // What a pipe holds was written for the working directory.
  document->directory = file.native().starts_with("/dev/") ? std::filesystem::path() : file.parent_path();
  document->content = parse_document(read_file(file), document->name);
  for (const JsonOverride& given : overrides) {
    apply_override(document->content, given);
    document->overridden.push_back(given.pointer);
  }
  const Json* root = &document->content;
  return {std::move(document), root, ""};
}

JsonNode JsonNode::parse(std::string_view text, std::string name, const std::vector<JsonOverride>& overrides) {
  Json content = parse_document(text, name);
  for (const JsonOverride& given : overrides) apply_override(content, given);
  return wrap(std::move(content), std::move(name), "");
}

JsonNode JsonNode::wrap(Json content, std::string name, std::filesystem::path directory) {
  auto document = std::make_shared<Document>();
  document->name = std::move(name);
  document->directory = std::move(directory);
  document->content = std::move(content);
  const Json* root = &document->content;
  return {std::move(document), root, ""};
}

std::filesystem::path JsonNode::directory() const {
  for (const auto& pointer : document_->overridden)
    if (pointer_ == pointer || pointer_.starts_with(pointer + "/")) return "";
  return document_->directory;
}

const std::string& JsonNode::file() const { return document_->name; }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_string() const { return value_->is_string(); }
bool JsonNode::is_number() const { return value_->is_number(); }

void JsonNode::fail(std::string_view message) const {
  // A NUL, which a string of JSON may hold, would end the message.
  throw ConfigError(printable(fmt::format("{}: {}: {}", file(), pointer(), message), "\n"));
}

void JsonNode::expected(std::string_view expectation) const {
  fail(fmt::format("found {}, expected {}", shown(*value_), expectation));
}

std::string JsonNode::as_string() const {
  if (!value_->is_string() || value_->as_string().empty()) expected("a string that is not empty");
  return value_->get<std::string>();
}

bool JsonNode::as_bool() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

std::int64_t JsonNode::as_integer(std::int64_t low, std::int64_t high) const {
  const std::string range = fmt::format("an integer from {} to {}", low, high);
  // 5e7 is a whole number too, although its text has an exponent.
  if (value_->is_number_float() && std::abs(value_->get<double>()) < 0x1p53 &&
      value_->get<double>() == std::trunc(value_->get<double>())) {
    const auto whole = static_cast<std::int64_t>(value_->get<double>());
    if (whole < low || whole > high) expected(range);
    return whole;
  }
  if (!value_->is_number_integer()) expected(range);
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    expected(range);
  const auto number = value_->get<std::int64_t>();
  if (number < low || number > high) expected(range);
  return number;
}

std::uint64_t JsonNode::as_seed() const {
  const bool whole = value_->is_number_unsigned() || (value_->is_number_integer() && value_->get<std::int64_t>() >= 0);
  if (!whole) expected("an integer from 0 to 18446744073709551615");
  return value_->get<std::uint64_t>();
}

double JsonNode::as_number(double low, double high) const {
  const double number = value_->is_number() ? value_->get<double>() : kNotANumber;
  if (!(number >= low && number <= high)) {
    if (std::isinf(high)) expected(fmt::format("a number of at least {}", low));
    expected(fmt::format("a number from {} to {}", low, high));
  }
  return number;
}

std::vector<double> JsonNode::as_numbers(double low, double high) const {
  std::vector<double> numbers;
  if (!value_->is_array()) expected("an array of numbers");
  numbers.reserve(value_->size());
  for (const auto& element : *value_) {
    const double number = element.is_number() ? element.get<double>() : kNotANumber;
    // The pointer's text is made only for an element that fails, because arrays are long.
    if (!(number >= low && number <= high)) as_array()[numbers.size()].as_number(low, high);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<JsonNode> JsonNode::as_array() const {
  if (!value_->is_array()) expected("an array");
  std::vector<JsonNode> elements;
  elements.reserve(value_->size());
  for (const auto& element : *value_)
    elements.push_back(JsonNode(document_, &element, pointer_ + "/" + std::to_string(elements.size())));
  return elements;
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::as_map() const {
  if (!value_->is_object()) expected("an object");
  std::vector<std::pair<std::string, JsonNode>> members;
  for (const auto& [key, element] : value_->items())
    members.emplace_back(key, JsonNode(document_, &element, pointer_ + "/" + escaped_key(key)));
  return members;
}

JsonNode JsonNode::child(std::string_view key) const {
  return {document_, &value_->at(std::string(key)), pointer_ + "/" + escaped_key(key)};
}

template <class Q>
Q JsonNode::as_quantity() const {
  if (!value_->is_string()) {
    if (value_->is_number())
      fail(fmt::format("found the bare number {}, expected {}: a quantity carries its unit", shown(*value_),
                       kRange<Q>.expected));
    expected(kRange<Q>.expected);
  }
  try {
    const Q quantity = parse_quantity<Q>(value_->as_string());
    if (magnitude(quantity) < 0) expected(fmt::format("{}, not negative", kRange<Q>.expected));
    if (magnitude(quantity) > kRange<Q>.high) expected(fmt::format("{}, and less of it", kRange<Q>.expected));
    return quantity;
  } catch (const std::invalid_argument& error) {
    fail(error.what());
  }
}

template <class Q>
Q JsonNode::as_positive() const {
  const Q quantity = as_quantity<Q>();
  if (!(magnitude(quantity) > 0)) expected(fmt::format("{}, above zero", kRange<Q>.expected));
  if (magnitude(quantity) < kRange<Q>.low) expected(fmt::format("{}, and more of it", kRange<Q>.expected));
  return quantity;
}

#define GANYMEDE_QUANTITY(Q)                   \
  template Q JsonNode::as_quantity<Q>() const; \
  template Q JsonNode::as_positive<Q>() const;
GANYMEDE_QUANTITY(Seconds)
GANYMEDE_QUANTITY(Bytes)
GANYMEDE_QUANTITY(BytesPerSecond)
GANYMEDE_QUANTITY(FlopsPerSecond)
GANYMEDE_QUANTITY(Watts)
GANYMEDE_QUANTITY(GramsPerKwh)
GANYMEDE_QUANTITY(MicroUsdPerHour)
#undef GANYMEDE_QUANTITY

std::string JsonNode::as_choice(const std::vector<std::string>& names) const {
  std::string name = value_->is_string() ? value_->get<std::string>() : "";
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  expected(list_of(names) + (did_you_mean(name, names)));
}

JsonObject::JsonObject(const JsonNode& node) : node_(node) {
  if (!node.is_object()) node.expected("an object");
}

std::optional<JsonNode> JsonObject::optional(std::string_view key) {
  known_.emplace_back(key);
  if (!node_.value().contains(std::string(key))) return std::nullopt;
  return node_.child(key);
}

JsonNode JsonObject::required(std::string_view key) {
  if (auto found = optional(key)) return *found;
  // A misspelt key is more likely than a forgotten one, so it is looked for first.
  for (const auto& [name, member] : node_.as_map()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end() && nearest(name, {std::string(key)}))
      member.fail(fmt::format("unknown key; did you mean \"{}\"?", key));
  }
  node_.fail(fmt::format("the key \"{}\" is missing", key));
}

JsonNode JsonObject::one_of(std::string_view first, std::string_view second) {
  auto a = optional(first);
  auto b = optional(second);
  if (a && b) b->fail(fmt::format("stands beside \"{}\", expected only one of the two", first));
  if (!a && !b) node_.fail(fmt::format("expected \"{}\" or \"{}\"", first, second));
  return a ? *a : *b;
}

void JsonObject::finish() const {
  for (const auto& [name, member] : node_.as_map()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const auto guess = nearest(name, known_);
    if (guess) member.fail(fmt::format("unknown key; did you mean \"{}\"?", *guess));
    member.fail(fmt::format("unknown key; known here: {}", list_of(known_)));
  }
}

void check_schema(JsonObject& object, std::string_view schema) {
  // This does not call required(), which would take "schemes" for a misspelt "schema", because no other key was asked
  // for yet.
  const auto found = object.optional("schema");
  if (!found) object.node().fail("the key \"schema\" is missing");
  if (!found->is_string() || found->as_string() != schema) found->expected(fmt::format("\"{}\"", schema));
}

}  // namespace ganymede
