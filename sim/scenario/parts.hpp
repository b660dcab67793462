#pragma once
// A scenario in parts, for searches: thousands of candidates rent different nodes and share all else, which is parsed
// once.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Nodes that are rented at a price of their platform; their spot market is as the platform says.
struct RentedNodes {
  std::string catalog;             ///< As a scenario names it.
  std::uint64_t catalog_hash = 0;  ///< Hash of the catalog's text.
  std::shared_ptr<const platforms::Platform> platform;
  policies::Pool pool;  ///< The platform must have a price of it.
  std::string name;     ///< Name of the pool; empty: as if the scenario gave it none.
};

/// A scenario whose nodes are chosen. Two pools must be in the same region, where they need no link.
struct ScenarioParts {
  std::string file;  ///< For error messages.
  std::vector<RentedNodes> nodes;
  std::vector<std::string> allowed_regions;
  /// All sections but "platform" and "seed" by key, each at the JSON pointer of that key; "workload" and
  /// "synchronization" must be among them.
  std::map<std::string, JsonNode> sections;
  std::uint64_t seed = 0;
};

/// The parts as a `ganymede.scenario/1`.
Json document_of(const ScenarioParts& parts);

/// Returns what read_scenario() reads from document_of(): the same scenario with the same hashes, of the platforms that
/// the parts hold. Throws as it does.
Scenario make_scenario(const ScenarioParts& parts, ScenarioInputCache& cache);

}  // namespace ganymede::sim
