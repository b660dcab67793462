#include "common/json_parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

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

/// The most levels of nesting that a document may have. The library copies and writes values by recursion, so that some
/// ten thousand levels would exhaust the stack; files of this project have less than ten.
constexpr std::size_t kMaxLevels = 200;

[[noreturn]] void fail_nesting(std::string_view where) {
  throw ConfigError(
      fmt::format("{}: found more than {} levels of nesting, expected at most {}", where, kMaxLevels, kMaxLevels));
}

/// A callback of the parser that refuses deep nesting, and duplicate keys, because the library would silently keep the
/// last one.
class Watch {
 public:
  explicit Watch(std::string file) : file_(std::move(file)) {}

  bool operator()(int /*depth*/, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        begin_value();
        if (levels_.size() == kMaxLevels) fail_nesting(file_);
        levels_.push_back({event == Event::array_start, {}, "", 0});
        break;
      case Event::object_end:
      case Event::array_end:
        levels_.pop_back();
        break;
      case Event::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!levels_.back().keys.insert(key).second)
          throw ConfigError(fmt::format("{}: {}/{}: duplicate key", file_, pointer(), escaped_key(key)));
        levels_.back().key = key;
        break;
      }
      case Event::value:
        begin_value();
        break;
    }
    return true;
  }

  /// The pointer of the next value.
  std::string next_value() const {
    if (levels_.empty()) return "/";
    const Level& here = levels_.back();
    return pointer() + "/" + (here.array ? std::to_string(here.count) : escaped_key(here.key));
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
  /// The pointer of the object being read. Each level but the innermost adds the step that leads to the next.
  std::string pointer() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i)
      text += "/" + (levels_[i].array ? std::to_string(levels_[i].count - 1) : escaped_key(levels_[i].key));
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

/// The library's message without its code in brackets; for a syntax error also without the position.
std::string reason(std::string_view what) {
  what.remove_prefix(what.starts_with('[') ? what.find("] ") + 2 : 0);
  if (what.starts_with("parse error")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what);
}

/// The value of an override, as JSON if it parses as JSON, else as a string.
nlohmann::json override_value(const JsonOverride& given) {
  Watch watch("--set " + given.pointer);
  try {
    return nlohmann::json::parse(given.value, std::ref(watch));
  } catch (const nlohmann::json::exception&) {
    return given.value;
  }
}

/// Checks that an index is at most one beyond the array's end; the library would fill a gap with nulls.
void check_indices(const nlohmann::json& content, nlohmann::json::json_pointer pointer) {
  std::vector<std::string> steps;
  for (; !pointer.empty(); pointer.pop_back()) steps.push_back(pointer.back());
  const nlohmann::json absent;
  const nlohmann::json* here = &content;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const bool digits =
        !step->empty() && std::all_of(step->begin(), step->end(), [](char c) { return c >= '0' && c <= '9'; });
    if (here->is_object()) {
      const auto member = here->find(*step);
      here = member == here->end() ? &absent : &*member;
    } else if (digits && (here->is_array() || here->is_null())) {  // a number makes an array of an absent value
      const std::size_t size = here->size();
      const bool in_range = step->size() <= 9 && std::stoul(*step) <= size;
      if (!in_range)
        throw ConfigError(
            fmt::format("found the index {}, expected at most {}: the array has no more elements", *step, size));
      here = std::stoul(*step) < size ? &(*here)[std::stoul(*step)] : &absent;
    } else {
      here = &absent;
    }
  }
}

/// Removes the value at the pointer. Throws ConfigError if there is none, because the name may be misspelt.
void remove_value(nlohmann::json& content, const nlohmann::json::json_pointer& pointer) {
  if (!content.contains(pointer)) throw ConfigError("found nothing there, expected what null removes");
  nlohmann::json& parent = content[pointer.parent_pointer()];
  if (parent.is_array())
    parent.erase(std::stoul(pointer.back()));
  else
    parent.erase(pointer.back());
}

}  // namespace

nlohmann::json parse_document(std::string_view text, const std::string& name) {
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isspace(c) != 0; }))
    throw ConfigError(name + ": the file is empty, expected JSON");
  Watch watch(name);
  try {
    return nlohmann::json::parse(text, std::ref(watch), true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::parse_error& error) {
    throw ConfigError(
        fmt::format("{}: {}: not valid JSON: {}", name, position(text, error.byte), reason(error.what())));
  } catch (const nlohmann::json::exception& error) {  // a number beyond a double's range
    throw ConfigError(fmt::format("{}: {}: {}", name, watch.next_value(), reason(error.what())));
  }
}

void apply_override(nlohmann::json& content, const JsonOverride& given) {
  if (static_cast<std::size_t>(std::count(given.pointer.begin(), given.pointer.end(), '/')) > kMaxLevels)
    fail_nesting("--set " + given.pointer.substr(0, 40) + "...");
  nlohmann::json value = override_value(given);
  try {
    (void)nlohmann::json({given.pointer, given.value}).dump();  // throws if the text is not UTF-8
    const nlohmann::json::json_pointer pointer(given.pointer);
    check_indices(content, pointer);
    if (value.is_null())
      remove_value(content, pointer);
    else
      content[pointer] = std::move(value);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("--set {}={}: {}", given.pointer, given.value, error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("--set {}={}: {}", given.pointer, given.value, reason(error.what())));
  }
}

}  // namespace ganymede
