#pragma once
// Pieces of reading a scenario, shared by the files that do it.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/random.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede {

/// The hash of a text that comes with the program, which does not change under its name: worked out once, because a
/// search reads thousands of scenarios that name it.
inline std::uint64_t embedded_hash(const std::string& name, std::string_view text) {
  static std::map<std::string, std::uint64_t> known;
  const auto [place, fresh] = known.try_emplace(name, 0);
  if (fresh) place->second = fnv1a(text);
  return place->second;
}

/// What a scenario says once the files that it names are replaced by their content: the same wherever they lie.
class Fingerprint {
 public:
  explicit Fingerprint(const JsonNode& node) : content_(node.value()) {}
  void replace(const std::string& pointer, std::string_view content) { replace(pointer, fnv1a(content)); }
  void replace(const std::string& pointer, std::uint64_t hash) {
    content_[nlohmann::json::json_pointer(pointer)] = hexadecimal(hash);
  }
  /// Of all but these members; "/…": pointers to members of members.
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

// scenario_pools.cpp
void read_pools(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);
/// What the policy may use besides, once it is known.
void add_offers(Scenario& scenario);

// scenario_charges.cpp
void read_charges(const JsonNode& node, Scenario& scenario);
/// What a volume is to hold.
struct Kept {
  Bytes bytes{0};            ///< 0: not known
  bool at_all = true;        ///< false: nothing is ever written to it
  const char* unknown = "";  ///< why `bytes` is not known, as the end of a sentence
};
/// What stands under "storage": a class's name, or an object with its size and what is provisioned. A volume without a
/// size has the size that what it keeps needs.
Storage read_volume(const JsonNode& node, const ScenarioPool& where, const Kept& kept, Volume& volume);
/// What leaving a pool's place for another's costs by the catalog, for each 1e9 bytes; none: not known.
std::optional<double> transfer_price(const ScenarioPool& from, const ScenarioPool& to, PoolLink::Between between);
PoolLink::Between between_places(const ScenarioPool& a, const ScenarioPool& b);

// scenario_life.cpp
/// "checkpoint" and "storage".
void read_checkpoints_and_storage(JsonObject& in, Scenario& scenario);
void read_faults(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);
void read_policy(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);

/// Index of the pool of that name; ConfigError with the names there are.
std::size_t find_pool(const JsonNode& node, const Scenario& scenario);

// scenario_servers.cpp
/// What the scheme of asynchronous training wants in machines of their own, next to the pools, which have been read.
ServerNodes read_servers(const JsonNode& scheme, Scenario& scenario);

}  // namespace ganymede
