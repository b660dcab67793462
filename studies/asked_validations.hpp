#pragma once
// Studies of measurements that a user asks for, by name or as files.

#include <string>
#include <vector>

#include "common/json.hpp"
#include "studies/rehearsed_links.hpp"
#include "studies/shards.hpp"
#include "studies/validation.hpp"

namespace ganymede::studies {

/// All are read before the first one runs.
struct AskedValidations {
  std::vector<std::string> names;
  std::vector<JsonNode> documents;
  std::vector<Validation> studies;
};

/// Reads the studies that come with the program under these names, or files; all that come with it if there are none.
/// Throws ConfigError with the nearest name for one that is neither.
AskedValidations read_asked(const std::vector<std::string>& names);

/// Does one shard of the studies, for `ganymede merge`; `program` is its version.
ShardOutcome run_validation_shard(AskedValidations asked, const std::string& program, const Shard& shard,
                                  const std::string& folder, ShardOptions how);

/// Runs the studies of a user's rehearsals and learns from how far they were off. Throws ConfigError for two files with
/// the same rehearsal.
RehearsedLinks read_rehearsals(const std::vector<std::string>& files);

}  // namespace ganymede::studies
