#pragma once
// What a result, a run of a sweep or a plan says to rent and to train: what a launch file needs of it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/documents.hpp"

namespace ganymede {

/// What several seeds of one scenario came to.
struct LaunchSeeds {
  struct Spread {
    double median = 0, low = 0, high = 0;
  };
  int count = 0, finished = 0, met = 0;  ///< the others never finish
  std::optional<Spread> time_s, usd;     ///< of those that finish
};

struct Launch {
  std::string source;  ///< "result.json", "sweep.json, run 3": for comments
  std::string model, dataset;
  std::string precision;               ///< of the recorded trace; empty: not known
  int batch_per_gpu = 0;               ///< images
  std::int64_t global_batch = 0;       ///< images that counted in a simulated step; 0: the document does not say
  std::int64_t images = 0, steps = 0;  ///< steps in which every GPU trains a batch, whatever was simulated
  std::uint64_t seed = 0;

  std::string provider, region, zone, market, instance, gpu;
  int nodes = 0, gpus_per_node = 0;
  int instance_gpus = 0;  ///< that the instance has; 0: not known
  bool cpu = false;       ///< the "GPU" is all processors of a host

  std::string scheme, mode, placement, policy;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: the document does not say
  std::optional<double> time_s, usd;  ///< as simulated, with that seed
  std::optional<LaunchSeeds> seeds;   ///< where several were

  int gpus() const { return nodes * gpus_per_node; }
  bool spot() const { return market == "spot"; }
};

/// Of a sweep the run of that index, or without one the cheapest of those that met their goals. ConfigError where the
/// document does not hold what a launch needs: no run, no chosen candidate, several pools, a TPU, written before
/// results had it.
Launch read_launch(const Document& document, std::optional<std::size_t> run);

/// A name for clusters: RFC 1035, at most `longest` characters, from anything.
std::string label_of(const std::string& text, std::size_t longest);
/// ConfigError unless it is such a label already.
void check_label(const std::string& flag, const std::string& name, std::size_t longest);

/// How the training is started.
struct TrainCommand {
  std::string own;      ///< the user's command; empty: `ganymede train`
  std::string dataset;  ///< a path on the nodes, or "builtin"
  std::string folder;   ///< of checkpoints, on the nodes
};

/// The environment that the scripts below read: every text that came from a file or a flag is there, none in a script.
nlohmann::ordered_json train_environment(const Launch& launch, const TrainCommand& command);

/// The shell lines that train, after NODE_RANK, NUM_NODES, NUM_GPUS_PER_NODE, MASTER_ADDR and MASTER_PORT are set:
/// `prefix` starts several processes (mpirun and its flags), empty on one node.
std::string train_line(const Launch& launch, const TrainCommand& command, const std::string& prefix);

/// What `ganymede train` or the launched command does otherwise than the simulation, a sentence each.
std::vector<std::string> launch_remarks(const Launch& launch, const TrainCommand& command);

/// The head of a launch file, as comment text: what it launches and what the simulation says of it, then the remarks.
std::string launch_summary(const Launch& launch, const TrainCommand& command);

}  // namespace ganymede
