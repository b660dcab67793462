#pragma once
// The arguments of the program for a job, command by command.

#include <filesystem>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "serve/forms.hpp"

namespace ganymede::serve {

struct JobCommand {
  std::vector<std::string> arguments;  ///< of the program
  std::string output = "output.txt";   ///< file of its standard output
  std::string log = "log.txt";
  bool progress = false;  ///< it has the option --progress-fd
  std::string without{};  ///< not empty: the job goes on if the command fails, and says that there is none of this
};

/// The commands of a job in their order; the last one is the job itself. `input` is the content of the input.json in
/// its folder. Throws ConfigError if it names a checkpoint that no longer exists.
std::vector<JobCommand> commands_of(JobKind kind, const std::string& input, const Checkpoints& checkpoints, int cores);

inline constexpr const char* kTrainedCheckpoint = "checkpoint";  ///< folder of a training's checkpoints in the job's
inline constexpr const char* kPrediction = "prediction.json";    ///< a training's plan for the clouds

/// From a training's plan for the clouds, what the page shows beside the training: the best of each provider and market
/// with its time, cost and GPU, and the memory that a GPU needs.
std::string clouds_json(const std::filesystem::path& folder);

// The differences between the results of two jobs.

/// Compares two plans as `ganymede diff` does, and two sweeps by the runs of both that differ only in their seed.
/// Returns text. Throws ConfigError for results of different kinds, for those that an earlier program wrote, and for
/// those that are too large.
std::string differences_of_results(const std::filesystem::path& before, const std::filesystem::path& after);

// The jobs of a server as metrics for Prometheus.

/// Metrics of jobs as Jobs::list() describes them: how many there are in each state, and how far each running one is.
std::string job_metrics(const OrderedJson& jobs);

}  // namespace ganymede::serve
