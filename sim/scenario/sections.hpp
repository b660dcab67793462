#pragma once
// Readers of a scenario's sections, one file each. They run in the order in which read_scenario() calls them, because
// later sections depend on earlier ones: how many steps an epoch has depends on the number of workers.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "sim/scenario/fingerprint.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

struct RentedNodes;  // sim/scenario/parts.hpp

/// "platform" (pools.cpp).
void read_pools(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint, ScenarioInputCache& cache);
/// The pool of nodes that a search has chosen.
ScenarioPool pool_of(const RentedNodes& nodes);
/// Returns the index of the pool that `node` names. Throws ConfigError, which lists the known names, for an unknown
/// name.
std::size_t find_pool(const JsonNode& node, const Scenario& scenario);
/// The name of a pool to which the scenario gives none, for example "p3.8xlarge us-east-1 spot".
std::string default_name(const policies::Pool& pool, const std::string& zone = "");
/// Regions in which `instance` has a price, sorted.
std::vector<std::string> priced_regions(const platforms::Instance& instance);

/// Sets how the pool's spot nodes are taken back: as its platform states it, or by default. Does nothing for other
/// markets (spot.cpp).
void set_default_hazards(ScenarioPool& pool);
/// Applies what the scenario says under "spot" to a spot pool. Does nothing for other markets.
void apply_spot_choice(ScenarioPool& pool, const SpotChoice& choice);
/// "spot", "lifetimes", "notice", "capacity", "prices" and "carbon" of a pool.
void read_hazards(JsonObject& in, ScenarioPool& pool, Fingerprint& fingerprint);

/// "links" of "platform" (pools.cpp).
void read_links(const JsonNode& node, Scenario& scenario);
/// Throws ConfigError at `node` unless all pools have different names and a link joins every two pools in different
/// places.
void check_links(const JsonNode& node, const Scenario& scenario);

/// Adds the pools that the policy may use in addition to those that the scenario asks for; "policy" must have been read
/// before (policy.cpp).
void add_policy_pools(Scenario& scenario);

/// "synchronization", with the dedicated servers of asynchronous training (synchronization.cpp).
void read_synchronization(const JsonNode& node, Scenario& scenario);

/// "workload" (workload.cpp).
void read_workload(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint, ScenarioInputCache& cache);

/// "checkpoint" and "storage" (storage.cpp).
void read_checkpoints_and_storage(const std::optional<JsonNode>& checkpoint, const std::optional<JsonNode>& storage,
                                  Scenario& scenario);

/// The use of a volume.
struct VolumeContent {
  Bytes bytes{0};            ///< 0: not known.
  bool is_written = true;    ///< False: nothing is ever written to it.
  const char* unknown = "";  ///< Why `bytes` is not known, as the end of a sentence.
};
/// Reads a member of "storage": the name of a class, or an object with the size and the provisioned IOPS and
/// throughput. A volume without a stated size is as large as its content (storage.cpp).
platforms::Storage read_volume(const JsonNode& node, const ScenarioPool& pool, const VolumeContent& content,
                               Volume& volume);

/// "faults" (small_sections.cpp).
void read_faults(const JsonNode& node, Scenario& scenario);

/// "policy" (policy.cpp).
void read_policy(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint);

/// "billing" (small_sections.cpp).
void read_charges(const JsonNode& node, Scenario& scenario);

}  // namespace ganymede::sim
