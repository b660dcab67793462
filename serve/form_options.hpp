#pragma once
// What the page offers: everything that comes with the program, and the checkpoints that the user has named. A request
// can choose only among these; it can name neither a file nor a policy that runs one of the user's programs.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ganymede::serve {

/// Directories that hold checkpoints, by the names under which the page offers them.
using Checkpoints = std::map<std::string, std::filesystem::path>;

struct WorkloadOption {
  std::string trace;  ///< as a scenario names it: "recorded:mlp-gan-cpu", "layers:biggan"
  std::string model, about;
  std::vector<int> batches;  ///< sorted
  std::string dataset;       ///< name of the offered data set whose images have the size of the model's
};

/// Recorded traces, then lists of layers. Read once, on first use.
const std::vector<WorkloadOption>& workload_options();
/// Policies that need no file from the user, that is neither a program nor a trained table.
const std::vector<std::string>& policy_options();

/// The checkpoints of `named` and those in the directories of `folder`, which need not exist.
Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder);

/// All options, as the page gets them from /api/choices.
nlohmann::ordered_json form_options_json(const Checkpoints& checkpoints);

}  // namespace ganymede::serve
