#pragma once
// The choices of the page: everything that comes with the program, the checkpoints that the user has named, and the
// files that the user has sent. A request can choose only among these; it can name neither a file nor a policy that
// runs one of the user's programs.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "serve/uploads.hpp"

namespace ganymede::serve {

/// Directories that hold checkpoints, by the names under which the page offers them.
using Checkpoints = std::map<std::string, std::filesystem::path>;

/// The files that a form may name besides those that come with the program.
struct Offer {
  Checkpoints checkpoints;
  Uploads uploads;
};

struct WorkloadOption {
  std::string trace;  ///< as a form names it: "recorded:mlp-gan-cpu", "layers:biggan", "upload:3"
  std::string model, about;
  std::map<int, double> memory_bytes;  ///< by the recorded batch sizes: what a GPU must hold in a training with it
  std::string dataset;                 ///< name of the offered data set whose images have the size of the model's
  bool measurable = false;             ///< a step that the user measured may stand in place of the recorded ones
};

/// Recorded traces, then lists of layers; not those that the user has sent. Read once, on first use.
const std::vector<WorkloadOption>& workload_options();
/// Policies that need no file from the user, that is neither a program nor a trained table.
const std::vector<std::string>& policy_options();

/// The checkpoints of `named` and those in the directories of `folder`, which need not exist.
Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder);

/// All options, as the page gets them from /api/choices.
OrderedJson form_options_json(const Offer& offer);

}  // namespace ganymede::serve
