#pragma once
// Pieces of reading a scenario, shared by the files that do it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/random.hpp"
#include "sim/run/scenario.hpp"

namespace ganymede {

/// What a scenario says once the files that it names are replaced by their content: the same wherever they lie.
class Fingerprint {
 public:
  explicit Fingerprint(const JsonNode& node) : content_(node.value()) {}
  void replace(const std::string& pointer, std::string_view content) {
    content_[nlohmann::json::json_pointer(pointer)] = hexadecimal(fnv1a(content));
  }
  /// Of all but these members.
  std::string hash_without(std::initializer_list<const char*> keys) const {
    auto rest = content_;
    for (const char* key : keys) rest.erase(key);
    return hexadecimal(fnv1a(rest.dump()));
  }

 private:
  static std::string hexadecimal(std::uint64_t hash) { return fmt::format("{:016x}", hash); }
  nlohmann::json content_;
};

// scenario_pools.cpp
void read_pools(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);
/// What the policy may use besides, once it is known.
void add_offers(Scenario& scenario);

// scenario_life.cpp
void read_storage(const JsonNode& node, Scenario& scenario);
void read_checkpoint(const JsonNode& node, Scenario& scenario);
void read_faults(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);
void read_policy(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);

/// Index of the pool of that name; ConfigError with the names there are.
std::size_t find_pool(const JsonNode& node, const Scenario& scenario);

}  // namespace ganymede
