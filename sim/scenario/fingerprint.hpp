#pragma once
// The content of a scenario from which its hashes are computed.

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/json.hpp"
#include "common/random.hpp"

namespace ganymede::sim {

/// The content of a scenario, with the hash of each file's content in place of the file's name: two scenarios with the
/// same content have the same fingerprint, wherever their files are.
class Fingerprint {
 public:
  explicit Fingerprint(const JsonNode& node) : content_(node.value()) {}
  /// Puts the hash of `content` in place of the value at `pointer`.
  void replace(const std::string& pointer, std::string_view content) { replace(pointer, fnv1a(content)); }
  void replace(const std::string& pointer, std::uint64_t hash) {
    content_[nlohmann::json::json_pointer(pointer)] = hexadecimal(hash);
  }
  /// The hash of everything but these members, as 16 hexadecimal digits. A key that begins with '/' is the JSON pointer
  /// of a nested member.
  std::string hash_without(std::initializer_list<const char*> keys) const {
    auto rest = content_;
    for (const std::string_view key : keys) {
      const std::size_t last = key.find_last_of('/');
      if (last == std::string_view::npos) {
        rest.erase(std::string(key));
      } else if (const nlohmann::json::json_pointer parent{std::string(key.substr(0, last))}; rest.contains(parent)) {
        rest[parent].erase(std::string(key.substr(last + 1)));
      }
    }
    return hexadecimal(fnv1a(rest.dump()));
  }

 private:
  static std::string hexadecimal(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
  nlohmann::json content_;
};

}  // namespace ganymede::sim
