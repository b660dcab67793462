#pragma once
// What the page offers: everything that comes with the program, and the checkpoints that the user has named. A request
// can choose among these and nothing else: it cannot name a file, and no policy that is a program of the user's.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ganymede::serve {

/// By name. Each is a directory that has checkpoints.
using Checkpoints = std::map<std::string, std::filesystem::path>;

struct WorkloadChoice {
  std::string trace;  ///< as a scenario names it: "recorded:mlp-gan-cpu", "layers:biggan"
  std::string model, about;
  std::vector<int> batches;  ///< sorted
  std::string dataset;       ///< of the page's, that the model is usually trained on
};

/// Recorded traces, then lists of layers. Made once.
const std::vector<WorkloadChoice>& workload_choices();
/// Those that decide without a file of the user's: no program, no trained table.
const std::vector<std::string>& policy_choices();

/// Those of `named` and the directories of `folder`, which need not be there.
Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder);

/// For the page.
nlohmann::ordered_json choices_json(const Checkpoints& checkpoints);

}  // namespace ganymede::serve
