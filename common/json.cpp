#include "common/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/file.hpp"
#include "common/text.hpp"

namespace ganymede {

struct JsonNode::Document {
  std::string name;
  std::filesystem::path directory;
  std::vector<std::string> overridden;  // pointers
  nlohmann::json content;
};

namespace {

/// "~" and "/" inside a key are written "~0" and "~1" (RFC 6901).
std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

/// Watches the parse: the library keeps the last of two equal keys silently, we refuse them.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string file) : file_(std::move(file)) {}

  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        begin_value();
        levels_.push_back({event == Event::array_start, {}, "", 0});
        break;
      case Event::object_end:
      case Event::array_end:
        levels_.pop_back();
        break;
      case Event::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!levels_.back().keys.insert(key).second)
          throw ConfigError(fmt::format("{}: {}/{}: duplicate key", file_, pointer(), escaped(key)));
        levels_.back().key = key;
        break;
      }
      case Event::value:
        begin_value();
        break;
    }
    return true;
  }

  /// Of the value that comes next.
  std::string next_value() const {
    if (levels_.empty()) return "/";
    const Level& here = levels_.back();
    return pointer() + "/" + (here.array ? std::to_string(here.count) : escaped(here.key));
  }

 private:
  struct Level {
    bool array;
    std::set<std::string> keys;
    std::string key;
    std::size_t count;
  };

  void begin_value() {
    if (!levels_.empty() && levels_.back().array) ++levels_.back().count;
  }
  /// Of the object being read: all levels but the innermost contribute the step that leads into the next.
  std::string pointer() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i)
      text += "/" + (levels_[i].array ? std::to_string(levels_[i].count - 1) : escaped(levels_[i].key));
    return text;
  }

  std::string file_;
  std::vector<Level> levels_;
};

std::string position(std::string_view text, std::size_t byte) {
  const auto upto = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(upto.begin(), upto.end(), '\n');
  const std::size_t newline = upto.rfind('\n');
  return fmt::format("line {}, column {}", line,
                     upto.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

/// The library's words after its bracketed code and, of a syntax error, its position.
std::string reason(std::string_view what) {
  what.remove_prefix(what.starts_with('[') ? what.find("] ") + 2 : 0);
  if (what.starts_with("parse error")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what);
}

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

nlohmann::json parse_content(std::string_view text, const std::string& name) {
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; }))
    throw ConfigError(name + ": the file is empty, expected JSON");
  DuplicateKeys keys(name);
  try {
    return nlohmann::json::parse(text, std::ref(keys), true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::parse_error& error) {
    throw ConfigError(
        fmt::format("{}: {}: not valid JSON: {}", name, position(text, error.byte), reason(error.what())));
  } catch (const nlohmann::json::exception& error) {  // a number beyond a double's range
    throw ConfigError(fmt::format("{}: {}: {}", name, keys.next_value(), reason(error.what())));
  }
}

/// A value short enough for a message.
std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

template <class Q>
constexpr std::string_view kExpected = "a quantity";
template <>
constexpr std::string_view kExpected<Seconds> = "a duration such as \"5us\"";
template <>
constexpr std::string_view kExpected<Bytes> = "a size such as \"64MiB\"";
template <>
constexpr std::string_view kExpected<BytesPerSecond> = "a bandwidth such as \"25Gbit/s\"";
template <>
constexpr std::string_view kExpected<FlopsPerSecond> = "a compute rate such as \"15.7Tflop/s\"";
template <>
constexpr std::string_view kExpected<Watts> = "a power such as \"300W\"";
template <>
constexpr std::string_view kExpected<GramsPerKwh> = "a carbon intensity such as \"400g/kWh\"";
template <>
constexpr std::string_view kExpected<MicroUsdPerHour> = "a price such as \"3.06USD/h\"";

template <class Unit>
double magnitude(Quantity<Unit> quantity) {
  return quantity.si;
}
double magnitude(MicroUsdPerHour price) { return static_cast<double>(price.value); }

}  // namespace

JsonNode::JsonNode(std::shared_ptr<const Document> document, const nlohmann::json* value, std::string pointer)
    : document_(std::move(document)), value_(value), pointer_(std::move(pointer)) {}

JsonNode JsonNode::load(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  auto document = std::make_shared<Document>();
  document->name = file.string();
  document->directory = file.parent_path();
  document->content = parse_content(read_file(file), document->name);
  for (const auto& [pointer, value] : overrides) {
    try {
      nlohmann::json parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
      document->content[nlohmann::json::json_pointer(pointer)] = parsed.is_discarded() ? nlohmann::json(value) : parsed;
    } catch (const nlohmann::json::exception& error) {
      throw ConfigError(fmt::format("--set {}={}: {}", pointer, value, reason(error.what())));
    }
    document->overridden.push_back(pointer);
  }
  const nlohmann::json* root = &document->content;
  return {std::move(document), root, ""};
}

JsonNode JsonNode::parse(std::string_view text, std::string name) {
  nlohmann::json content = parse_content(text, name);
  return wrap(std::move(content), std::move(name), "");
}

JsonNode JsonNode::wrap(nlohmann::json content, std::string name, std::filesystem::path directory) {
  auto document = std::make_shared<Document>();
  document->name = std::move(name);
  document->directory = std::move(directory);
  document->content = std::move(content);
  const nlohmann::json* root = &document->content;
  return {std::move(document), root, ""};
}

std::filesystem::path JsonNode::directory() const {
  for (const auto& pointer : document_->overridden)
    if (pointer_ == pointer || pointer_.starts_with(pointer + "/")) return "";
  return document_->directory;
}

const std::string& JsonNode::file() const { return document_->name; }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_string() const { return value_->is_string(); }
bool JsonNode::is_number() const { return value_->is_number(); }

void JsonNode::fail(std::string_view message) const {
  throw ConfigError(fmt::format("{}: {}: {}", file(), pointer(), message));
}

void JsonNode::expected(std::string_view expectation) const {
  fail(fmt::format("found {}, expected {}", shown(*value_), expectation));
}

std::string JsonNode::as_string() const {
  if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) expected("a string that is not empty");
  return value_->get<std::string>();
}

bool JsonNode::as_bool() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

std::int64_t JsonNode::as_integer(std::int64_t low, std::int64_t high) const {
  const std::string range = fmt::format("an integer from {} to {}", low, high);
  if (!value_->is_number_integer()) expected(range);
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    expected(range);
  const auto number = value_->get<std::int64_t>();
  if (number < low || number > high) expected(range);
  return number;
}

std::uint64_t JsonNode::as_seed() const {
  if (!value_->is_number_unsigned()) expected("an integer from 0 to 18446744073709551615");
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
    // Only a failing element pays for its pointer.
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
    members.emplace_back(key, JsonNode(document_, &element, pointer_ + "/" + escaped(key)));
  return members;
}

JsonNode JsonNode::child(std::string_view key) const {
  return {document_, &value_->at(std::string(key)), pointer_ + "/" + escaped(key)};
}

template <class Q>
Q JsonNode::as_quantity() const {
  if (!value_->is_string()) {
    if (value_->is_number())
      fail(fmt::format("found the bare number {}, expected {}: a quantity carries its unit", shown(*value_),
                       kExpected<Q>));
    expected(kExpected<Q>);
  }
  try {
    const Q quantity = parse_quantity<Q>(value_->get_ref<const std::string&>());
    if (magnitude(quantity) < 0) expected(fmt::format("{}, not negative", kExpected<Q>));
    return quantity;
  } catch (const std::invalid_argument& error) {
    fail(error.what());
  }
}

template <class Q>
Q JsonNode::as_positive() const {
  const Q quantity = as_quantity<Q>();
  if (!(magnitude(quantity) > 0)) expected(fmt::format("{}, above zero", kExpected<Q>));
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
  const auto guess = nearest(name, names);
  expected(list_of(names) + (guess ? fmt::format("; did you mean \"{}\"?", *guess) : ""));
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
  // A misspelt key is more likely than a forgotten one: look for it first.
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
  // Not required(): it comes first, when "schemes" is not known yet, and would take that for a misspelt "schema".
  const auto found = object.optional("schema");
  if (!found) object.node().fail("the key \"schema\" is missing");
  if (!found->is_string() || found->as_string() != schema) found->expected(fmt::format("\"{}\"", schema));
}

}  // namespace ganymede
