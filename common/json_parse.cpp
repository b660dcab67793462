#include "common/json_parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/budget.hpp"
#include "common/printable.hpp"

namespace ganymede {

std::string escaped_key(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (static_cast<unsigned char>(c) < 0x20)  // keeps the message on one line and free of control sequences
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return text;
}

namespace {

/// The most levels of nesting that a document may have. Values are copied, written and freed by recursion, so that some
/// ten thousand levels would exhaust the stack; files of this project have less than ten.
constexpr std::size_t kMaxLevels = 200;

[[noreturn]] void fail_nesting(std::string_view where) {
  throw ConfigError(
      fmt::format("{}: found more than {} levels of nesting, expected at most {}", where, kMaxLevels, kMaxLevels));
}

/// Makes a value of what the parser finds, in time proportional to the text, and refuses deep nesting. The library's
/// own callbacks are not used, because after each element they look through all elements before it.
template <bool kOrdered>
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Value = BasicJson<kOrdered>;

  /// `name` is that of the text, for messages. In a `strict` text a key may stand once in an object.
  Builder(std::string name, bool strict, JsonFilter needed = {})
      : name_(std::move(name)), strict_(strict), needed_(std::move(needed)) {}

  Value take() { return std::move(root_); }
  /// Where and why the parser ended before the end of the text: the byte, and the library's message with its number.
  std::size_t error_byte() const { return error_byte_; }
  int error_number() const { return error_number_; }
  const std::string& error_message() const { return error_message_; }

  /// The pointer of the value that is read next.
  std::string next_value() const {
    if (levels_.empty()) return "/";
    return pointer() + "/" + step(levels_.back(), levels_.back().value->size());
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // of formats that are no text
  bool start_object(std::size_t /*size*/) override { return begin(Value::object()); }
  bool start_array(std::size_t /*size*/) override { return begin(Value::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& key) override {
    Level& here = levels_.back();
    if (strict_ && here.value->contains(key))
      throw ConfigError(printable(fmt::format("{}: {}/{}: duplicate key", name_, pointer(), escaped_key(key))));
    here.key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    error_byte_ = byte;
    error_number_ = error.id;
    error_message_ = error.what();
    return false;
  }

 private:
  struct Level {
    Value* value;          // an object or an array
    std::string key = {};  // of the object's member that is read
  };

  Value* place(Value value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    const Level& here = levels_.back();
    if (here.value->is_array()) return &here.value->emplace_back(std::move(value));
    return &((*here.value)[here.key] = std::move(value));
  }
  bool add(Value value) {
    place(std::move(value));
    return true;
  }
  bool begin(Value value) {
    if (levels_.size() == kMaxLevels) {
      if (strict_) fail_nesting(name_);
      error_message_ = fmt::format("more than {} levels of nesting", kMaxLevels);
      return false;
    }
    levels_.push_back({place(std::move(value))});
    return true;
  }
  bool end() {
    levels_.pop_back();
    if constexpr (!kOrdered)
      if (needed_ && !levels_.empty()) drop_if_not_needed();
    return true;
  }
  void drop_if_not_needed() {
    static const std::string kNone;
    Level& here = levels_.back();
    const bool in_array = here.value->is_array();
    const std::string& key = in_array ? kNone : here.key;
    if (needed_(levels_.size(), levels_.front().key, key, in_array ? here.value->back() : here.value->at(key))) return;
    if (in_array)
      here.value->erase(here.value->size() - 1);
    else
      here.value->erase(key);
  }

  static std::string step(const Level& level, std::size_t index) {
    return level.value->is_array() ? std::to_string(index) : escaped_key(level.key);
  }
  /// The pointer of the object being read. Each level but the innermost adds the step that leads to the next.
  std::string pointer() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) text += "/" + step(levels_[i], levels_[i].value->size() - 1);
    return text;
  }

  std::string name_;
  bool strict_;
  JsonFilter needed_;
  Value root_;
  std::vector<Level> levels_;
  std::size_t error_byte_ = 0;
  int error_number_ = 0;
  std::string error_message_;
};

bool read(std::string_view text, nlohmann::json_sax<nlohmann::json>& builder, bool comments) {
  return nlohmann::json::sax_parse(text, &builder, nlohmann::json::input_format_t::json, /*strict=*/true, comments);
}

std::string position(std::string_view text, std::size_t byte) {
  const auto upto = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + std::count(upto.begin(), upto.end(), '\n');
  const std::size_t newline = upto.rfind('\n');
  return fmt::format("line {}, column {}", line,
                     upto.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
}

/// The library's message without its code in brackets; without `position` also without that of a syntax error.
std::string reason(std::string_view what, bool position = false) {
  what.remove_prefix(what.starts_with('[') ? what.find("] ") + 2 : 0);
  if (!position && what.starts_with("parse error")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what);
}

/// The value of an override, as JSON if it parses as JSON, else as a string.
Json override_value(const JsonOverride& given) {
  Builder<false> builder("--set " + given.pointer, /*strict=*/true);
  return read(given.value, builder, /*comments=*/false) ? builder.take() : Json(given.value);
}

/// Checks that an index is at most one beyond the array's end; a gap would be filled with nulls.
void check_indices(const Json& content, const JsonPointer& pointer) {
  const Json absent;
  const Json* here = &content;
  for (const std::string& step : pointer.steps()) {
    const bool digits =
        !step.empty() && std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (here->is_object()) {
      here = here->contains(step) ? &here->at(step) : &absent;
    } else if (digits && (here->is_array() || here->is_null())) {  // a number makes an array of an absent value
      const std::size_t size = here->size();
      const bool in_range = step.size() <= 9 && std::stoul(step) <= size;
      if (!in_range)
        throw ConfigError(
            fmt::format("found the index {}, expected at most {}: the array has no more elements", step, size));
      here = std::stoul(step) < size ? &here->at(std::stoul(step)) : &absent;
    } else {
      here = &absent;
    }
  }
}

/// Removes the value at the pointer. Throws ConfigError if there is none, because the name may be misspelt.
void remove_value(Json& content, const JsonPointer& pointer) {
  if (!content.contains(pointer)) throw ConfigError("found nothing there, expected what null removes");
  Json& parent = content[pointer.parent_pointer()];
  if (parent.is_array())
    parent.erase(std::stoul(pointer.back()));
  else
    parent.erase(pointer.back());
}

}  // namespace

template <bool kOrdered>
BasicJson<kOrdered> BasicJson<kOrdered>::parse(std::string_view text, bool comments) {
  Builder<kOrdered> builder("JSON", /*strict=*/false);
  if (read(text, builder, comments)) return builder.take();
  throw JsonError(reason(builder.error_message(), /*position=*/true));
}

template <bool kOrdered>
BasicJson<kOrdered> BasicJson<kOrdered>::parse_or_null(std::string_view text, bool comments) {
  Builder<kOrdered> builder("JSON", /*strict=*/false);
  return read(text, builder, comments) ? builder.take() : BasicJson();
}

Json parse_needed(std::istream& text, const JsonFilter& needed) {
  Builder<false> builder("JSON", /*strict=*/false, needed);
  const bool whole = nlohmann::json::sax_parse(text, &builder, nlohmann::json::input_format_t::json, /*strict=*/true,
                                               /*ignore_comments=*/true);
  if (whole) return builder.take();
  throw JsonError(reason(builder.error_message(), /*position=*/true));
}

template Json Json::parse(std::string_view, bool);
template OrderedJson OrderedJson::parse(std::string_view, bool);
template Json Json::parse_or_null(std::string_view, bool);
template OrderedJson OrderedJson::parse_or_null(std::string_view, bool);

Bytes memory_to_read(std::string_view text) {
  // Fitted to 600,000 values of one kind: {} 252 bytes each, [] 160, "" 203, 1 94, {"a":1} 542, {"a":1,"b":2} 830,
  // [[]] 350, texts of 20 and 100 characters 361 and 706 (simulate FILE, /usr/bin/time -f %M).
  double bytes = 6 * static_cast<double>(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') ++i;
    if (c == '"') quoted = !quoted, bytes += 55;
    if (quoted) continue;
    bytes += c == '{' ? 160 : c == '[' ? 110 : c == ':' ? 200 : c == ',' ? 100 : 0;
  }
  return Bytes{bytes};
}

Json parse_document(std::string_view text, const std::string& name) {
  constexpr std::size_t kSmall = 1 << 18;  // takes less than the least bound
  if (text.size() >= kSmall) check_memory(memory_to_read(text), name + ": reading it");
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; }))
    throw ConfigError(name + ": the file is empty, expected JSON");
  constexpr int kBeyondDouble = 406;  // the library's number for a number beyond a double's range
  Builder<false> builder(name, /*strict=*/true);
  if (read(text, builder, /*comments=*/true)) return builder.take();
  if (builder.error_number() == kBeyondDouble)
    throw ConfigError(fmt::format("{}: {}: {}", name, builder.next_value(), reason(builder.error_message())));
  throw ConfigError(fmt::format("{}: {}: not valid JSON: {}", name, position(text, builder.error_byte()),
                                reason(builder.error_message())));
}

void apply_override(Json& content, const JsonOverride& given) {
  if (static_cast<std::size_t>(std::count(given.pointer.begin(), given.pointer.end(), '/')) > kMaxLevels)
    fail_nesting("--set " + given.pointer.substr(0, 40) + "...");
  Json value = override_value(given);
  try {
    (void)Json({given.pointer, given.value}).dump();  // throws if the text is not UTF-8
    const JsonPointer pointer(given.pointer);
    check_indices(content, pointer);
    if (value.is_null())
      remove_value(content, pointer);
    else
      content[pointer] = std::move(value);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("--set {}={}: {}", given.pointer, given.value, error.what()));
  } catch (const JsonError& error) {
    throw ConfigError(fmt::format("--set {}={}: {}", given.pointer, given.value, error.what()));
  }
}

}  // namespace ganymede
