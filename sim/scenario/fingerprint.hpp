#pragma once
// The content of a scenario from which its hashes are computed.

#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/json_fwd.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::sim {

/// The content of a scenario, with the hash of each file's content in place of the file's name: two scenarios with the
/// same content have the same fingerprint, wherever their files are.
class Fingerprint {
 public:
  explicit Fingerprint(const JsonNode& node)
      : root_(node.pointer() == "/" ? "" : node.pointer()), content_(node.value()) {}
  /// The same for a scenario that is a document of its own.
  explicit Fingerprint(Json content) : content_(std::move(content)) {}
  /// Puts the hash of `content` in place of the value at `pointer`, which starts at the scenario or at the root of the
  /// document that contains it (a plan's chosen scenario is at "/chosen/scenario").
  void replace(const std::string& pointer, std::string_view content) { replace(pointer, fnv1a(content)); }
  void replace(const std::string& pointer, std::uint64_t hash) {
    const std::string inside = pointer.starts_with(root_ + "/") ? pointer.substr(root_.size()) : pointer;
    content_[JsonPointer(inside)] = files_[inside] = hexadecimal(hash);
  }
  /// The hash of each file's content, by the JSON pointer (from the scenario) of the value that names the file.
  const std::map<std::string, std::string>& files() const { return files_; }
  /// The hash of everything but these members, as 16 hexadecimal digits. A key that begins with '/' is the JSON pointer
  /// of a nested member.
  std::string hash_without(std::initializer_list<const char*> keys) const {
    auto rest = content_;
    for (const std::string_view key : keys) {
      const std::size_t last = key.find_last_of('/');
      if (last == std::string_view::npos) {
        rest.erase(std::string(key));
      } else if (const JsonPointer parent{std::string(key.substr(0, last))}; rest.contains(parent)) {
        rest[parent].erase(std::string(key.substr(last + 1)));
      }
    }
    return hexadecimal(fnv1a(rest.dump()));
  }
  /// How many pools the scenario itself states as a list; 0: it states one without a list.
  std::size_t pools() const {
    const Json& platform = content_.at("platform");
    return platform.contains("pools") ? platform.at("pools").size() : 0;
  }
  /// Makes one pool with all nodes of that list, whose pools must differ in market and name alone.
  void join_pools() {
    const Json pools = content_.at("platform").at("pools");
    Json one = pools.front();
    std::int64_t nodes = 0;
    for (const Json& pool : pools) nodes += pool.value("nodes", std::int64_t{1});
    one["nodes"] = nodes;
    for (const char* key : {"pools", "links"}) content_["platform"].erase(key);
    content_["platform"].update(one);
  }
  /// The hash of one member alone.
  std::string hash_of(const char* key) const { return hexadecimal(fnv1a(content_.at(key).dump())); }

 private:
  static std::string hexadecimal(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
  std::string root_;  // JSON pointer of the scenario in its document; "" if it is the document
  Json content_;
  std::map<std::string, std::string> files_;
};

}  // namespace ganymede::sim
