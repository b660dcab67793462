#pragma once
// Strict reading of JSON into structs. An error says where (file and JSON pointer), what was found and what was
// expected: `lab.json: /billing/granularity: found "0s", expected a duration such as "5us", above zero`. An unknown key
// is an error that names the nearest known one, and so is a duplicate key. // comments are allowed.
//
//   JsonObject in(JsonNode::load(path));
//   scenario.seed = in.required("seed").as_integer(0, kMaxSeed);
//   if (auto policy = in.optional("policy")) scenario.policy = read_policy(*policy);
//   in.finish();   // throws if the object has a key that was not asked for

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/errors.hpp"
#include "common/json_fwd.hpp"
#include "common/text.hpp"
#include "common/units.hpp"

namespace ganymede {

/// One value of a JSON document together with its file and JSON pointer.
class JsonNode {
 public:
  /// Reads a file and applies overrides. Throws ConfigError if it is missing, empty, unreadable, malformed, has a
  /// duplicate key or more than 200 levels of nesting, and for an override that leaves a gap in an array or is not
  /// UTF-8.
  static JsonNode load(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});
  /// The same for text in memory; messages call it `name`.
  static JsonNode parse(std::string_view text, std::string name, const std::vector<JsonOverride>& overrides = {});
  /// The same for a parsed document, whose relative paths start at `directory`.
  static JsonNode wrap(Json content, std::string name, std::filesystem::path directory);

  const std::string& file() const;
  /// "/platform/nodes"; the root is "/".
  std::string pointer() const { return pointer_.empty() ? "/" : pointer_; }
  const Json& value() const { return *value_; }
  /// The directory to which a path in this value is relative: the file's, or the working directory if the value was set
  /// by an override.
  std::filesystem::path directory() const;
  bool is_object() const;
  bool is_string() const;
  bool is_number() const;

  /// Throws ConfigError "file: pointer: message".
  [[noreturn]] void fail(std::string_view message) const;
  /// Throws ConfigError "file: pointer: found <this value>, expected <expected>".
  [[noreturn]] void expected(std::string_view expected) const;

  // Each of these throws ConfigError, located, if the value is of another type or out of range.
  std::string as_string() const;  ///< not empty
  bool as_bool() const;
  std::int64_t as_integer(std::int64_t low, std::int64_t high) const;
  std::uint64_t as_seed() const;                    ///< any unsigned 64-bit integer
  double as_number(double low, double high) const;  ///< finite, low <= x <= high
  std::vector<double> as_numbers(double low, double high) const;
  std::vector<JsonNode> as_array() const;
  /// The members of an object sorted by key, for maps whose keys are the user's (GPU names, regions).
  std::vector<std::pair<std::string, JsonNode>> as_map() const;

  /// Reads a string with a unit, such as "5us"; the quantity must be at least zero.
  template <class Q>
  Q as_quantity() const;
  /// The same for a quantity that must be above zero.
  template <class Q>
  Q as_positive() const;

  /// One of `names`. The error for another one lists them and names the nearest.
  std::string as_choice(const std::vector<std::string>& names) const;

  JsonNode child(std::string_view key) const;  ///< the member `key`; this value must be an object that has it

 private:
  struct Document;  // the file's name and its parsed content, shared by all its nodes
  JsonNode(std::shared_ptr<const Document> document, const Json* value, std::string pointer);

  std::shared_ptr<const Document> document_;
  const Json* value_;
  std::string pointer_;

  friend class JsonObject;
};

/// Reads the members of one object and remembers which keys were asked for.
class JsonObject {
 public:
  explicit JsonObject(const JsonNode& node);  ///< throws ConfigError unless it is an object

  /// The member `key`. Throws ConfigError if it is missing; the message names a key that looks like a misspelling of
  /// it.
  JsonNode required(std::string_view key);
  /// The member `key`; nothing if the object does not have it.
  std::optional<JsonNode> optional(std::string_view key);
  /// The member with one of two names. Throws ConfigError unless the object has exactly one of them.
  JsonNode one_of(std::string_view first, std::string_view second);
  const JsonNode& node() const { return node_; }

  /// Throws ConfigError for the first key that was not asked for, with the nearest that was.
  void finish() const;

 private:
  JsonNode node_;
  std::vector<std::string> known_;
};

/// Throws ConfigError unless the object's "schema" is `schema`, for example "ganymede.scenario/1".
void check_schema(JsonObject& object, std::string_view schema);

}  // namespace ganymede
