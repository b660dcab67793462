// Changes of JSON texts by the schemas of docs/schemas and of described documents, so that most inputs get beyond the
// first check.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "documents/schemas.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 24> kTexts = {
    "1s",     "0s",    "90s",   "1e-9s",    "1e300h",     "10min",
    "1epoch", "100MB", "1e18B", "64MiB",    "25Gbit/s",   "0GB/s",
    "300W",   "1USD",  "$0.01", "-1USD",    "2026-11-25", "recorded:dcgan-28-cpu",
    "",       "daly",  "ring",  "\xc3\xa9", "400g/kWh",   "99999999999999999999s"};
constexpr std::array<double, 14> kNumbers = {0,     1,   -1,   2,      0.5,   64,   1000,
                                             65536, 1e9, 1e18, 1e-300, 1e308, -0.0, 4294967296.0};

/// A part of a schema, and the file in which its references begin.
struct Part {
  const Json* schema = nullptr;
  std::string file;
};

const Json& schema_file(const std::string& name) {
  static std::map<std::string, Json> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  for (const documents::DescribedDocument& described : documents::described_documents())
    if (name == std::string(described.name) + ".json") return known[name] = Json::parse(described.schema().dump());
  const bool shared = name.starts_with("common/");
  const std::string stem = fs::path(name).stem().string();
  for (const EmbeddedText& file : shared ? embedded_schema_definitions() : embedded_schemas())
    if (file.name == stem) return known[name] = Json::parse(file.text);
  throw Failure("no schema " + name);
}

/// The file of a reference; those of files in common/ are relative to it or to its parent.
std::string referred_file(const std::string& reference, const std::string& from) {
  const std::string file = reference.substr(0, reference.find('#'));
  if (file.empty()) return from;
  return from.starts_with("common/") && file.find('/') == std::string::npos ? "common/" + file : file;
}

/// Gathers the names and words that documents of a schema may have, and the files that it refers to.
void gather_words(const Json& part, const std::string& file, std::set<std::string>& words,
                  std::set<std::string>& files) {
  const auto add = [&](const Json& word) {
    if (word.is_string()) words.insert(word.get<std::string>());
  };
  if (part.is_array())
    for (const Json& element : part) gather_words(element, file, words, files);
  if (!part.is_object()) return;
  for (const auto& [key, value] : part.items()) {
    if (key == "properties" && value.is_object())
      for (const auto& [name, unused] : value.items()) words.insert(name);
    if (key == "const") add(value);
    if (key == "enum" && value.is_array())
      for (const Json& word : value) add(word);
    if (key == "$ref" && value.is_string()) files.insert(referred_file(value.get<std::string>(), file));
    gather_words(value, file, words, files);
  }
}

class Changes {
 public:
  explicit Changes(RandomStream& random) : random_(random) {}

  /// Changes one place in the value, at a random depth.
  void change(Json& value, Part part, int depth = 0) {
    part = chosen(part);
    const bool here = depth > 0 && random_.below(4) == 0;
    if (!here && value.is_object() && !value.empty() && random_.below(5) != 0) {
      auto member = value.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(random_.below(value.size())));
      return change(member.value(), member_of(part, member.key()), depth + 1);
    }
    if (!here && value.is_array() && !value.empty() && random_.below(4) != 0)
      return change(value[random_.below(value.size())], items_of(part), depth + 1);
    if (value.is_object() && random_.below(3) != 0) return change_members(value, part);
    if (value.is_array() && random_.below(3) != 0) return change_elements(value, part);
    value = random_.below(8) == 0 ? foreign() : made(part, 0);
  }

 private:
  template <class List>
  const auto& any(const List& list) {
    return list[random_.below(list.size())];
  }

  /// The part behind references, and one of its alternatives.
  Part chosen(Part part) {
    for (int i = 0; i < 16 && part.schema != nullptr && part.schema->is_object(); ++i) {
      const Json& at = *part.schema;
      if (at.contains("$ref")) {
        const std::string reference = at["$ref"];
        const std::size_t hash = reference.find('#');
        const std::string file = referred_file(reference, part.file);
        part = {&schema_file(file).at(JsonPointer(reference.substr(hash + 1))), file};
        continue;
      }
      const Json* alternatives = nullptr;
      for (const char* key : {"oneOf", "anyOf", "allOf"})
        if (at.contains(key)) alternatives = &at[key];
      if (alternatives == nullptr) break;
      part.schema = at.contains("allOf") ? &(*alternatives)[0] : &any(*alternatives);
    }
    return part;
  }

  static const Json* find(const Part& part, const char* key) {
    if (part.schema == nullptr || !part.schema->is_object()) return nullptr;
    const auto found = part.schema->find(key);
    return found == part.schema->end() ? nullptr : &*found;
  }

  static Part member_of(const Part& part, const std::string& key) {
    const Json* properties = find(part, "properties");
    if (properties != nullptr && properties->contains(key)) return {&(*properties)[key], part.file};
    return {find(part, "additionalProperties"), part.file};
  }

  static Part items_of(const Part& part) { return {find(part, "items"), part.file}; }

  void change_members(Json& value, const Part& part) {
    const Json* properties = find(part, "properties");
    if (!value.empty() && random_.below(3) == 0) {
      auto member = value.begin();
      std::advance(member, static_cast<std::ptrdiff_t>(random_.below(value.size())));
      value.erase(member);
    } else if (properties != nullptr && !properties->empty()) {
      auto member = properties->begin();
      std::advance(member, static_cast<std::ptrdiff_t>(random_.below(properties->size())));
      value[member.key()] = made({&member.value(), part.file}, 0);
    } else {
      value["n" + std::to_string(random_.below(4))] = made(member_of(part, ""), 0);
    }
  }

  void change_elements(Json& value, const Part& part) {
    if (!value.empty() && random_.below(2) == 0)
      value.erase(random_.below(value.size()));
    else if (!value.empty() && random_.below(2) == 0)
      value.push_back(Json(any(value)));
    else
      value.push_back(made(items_of(part), 0));
  }

  Json foreign() {
    const std::array<Json, 6> values = {nullptr, true, Json::array(), Json::object(), Json(-1), Json("text")};
    return any(values);
  }

  Json number(const Part& part) {
    const Json* low = find(part, "minimum");
    const Json* high = find(part, "maximum");
    switch (random_.below(6)) {
      case 0:
        if (low != nullptr) return *low;
        break;
      case 1:
        if (high != nullptr) return *high;
        break;
      case 2:
        return any(kNumbers);
      case 3:
        if (low != nullptr) return low->get<double>() - 1;
        break;
      default:
        break;
    }
    return static_cast<std::int64_t>(random_.below(random_.below(2) == 0 ? 10 : 100'000));
  }

  /// A value that the part allows, more or less.
  Json made(Part part, int depth) {
    part = chosen(part);
    if (const Json* constant = find(part, "const")) return *constant;
    if (const Json* names = find(part, "enum")) return any(*names);
    const Json* type = find(part, "type");
    const std::string name = type == nullptr    ? ""
                             : type->is_array() ? any(*type).get<std::string>()
                                                : type->get<std::string>();
    if (name == "boolean") return random_.below(2) == 0;
    if (name == "integer" || name == "number") return number(part);
    if (name == "null") return nullptr;
    if (name == "array") {
      Json out = Json::array();
      for (std::uint64_t i = depth > 4 ? 0 : random_.below(4); i > 0; --i)
        out.push_back(made(items_of(part), depth + 1));
      return out;
    }
    if (name == "object") return object(part, depth);
    return std::string(any(kTexts));
  }

  Json object(const Part& part, int depth) {
    Json out = Json::object();
    const Json* properties = find(part, "properties");
    const Json* required = find(part, "required");
    if (properties == nullptr || depth > 5) return out;
    for (const auto& [key, value] : properties->items()) {
      const bool needed = required != nullptr && std::find(required->begin(), required->end(), key) != required->end();
      if (needed || random_.below(4) == 0) out[key] = made({&value, part.file}, depth + 1);
    }
    return out;
  }

  RandomStream& random_;
};

}  // namespace

void print_dictionary(std::string_view schema) {
  if (schema.empty()) return;
  std::set<std::string> words, files = {std::string(schema) + ".json"}, read;
  while (read != files)
    for (const std::string& file : std::set(files))
      if (read.insert(file).second) gather_words(schema_file(file), file, words, files);
  words.insert(kTexts.begin(), kTexts.end());
  for (const std::string& word : words) {
    std::string escaped;
    for (const unsigned char c : word)
      escaped += c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? fmt::format("\\x{:02x}", c) : std::string(1, c);
    std::printf("\"\\x22%s\\x22\"\n", escaped.c_str());
  }
}

std::string changed_by_schema(std::string_view text, std::string_view schema, RandomStream& random) {
  Json value = Json::parse_or_null(text, /*comments=*/true);
  if (value.is_null()) return "";
  const std::string file = std::string(schema) + ".json";
  Changes changes(random);
  for (std::uint64_t count = 1 + random.below(3); count > 0; --count) changes.change(value, {&schema_file(file), file});
  return value.dump_replacing();
}

}  // namespace ganymede::fuzz
