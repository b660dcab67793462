#pragma once
// The facts that a launch file needs from a result, a run of a sweep or a plan: what to rent and what to train.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/result.hpp"
#include "exports/exporter.hpp"
#include "report/documents.hpp"

namespace ganymede::exports {

struct Launch {
  std::string source;  ///< for comments: "result.json" or "sweep.json, run 3"
  std::string model, dataset;
  std::string precision;          ///< of the recorded trace; empty: not known
  int batch_per_gpu = 0;          ///< images
  std::int64_t global_batch = 0;  ///< images that a simulated step trained; 0: the document does not say
  std::int64_t images = 0;        ///< in the whole training
  std::int64_t steps = 0;         ///< of the launched training, in which every GPU trains a batch in each step
  std::uint64_t seed = 0;

  std::string provider, region, zone, market, instance, gpu;
  int nodes = 0, gpus_per_node = 0;
  int instance_gpus = 0;  ///< GPUs of the instance, used or not; 0: not known
  bool cpu = false;       ///< trains on processors: the "GPU" stands for all processors of a host

  std::string scheme, mode, placement, policy;
  std::int64_t checkpoint_every = 0;         ///< steps between two checkpoints; 0: the document does not say
  double time_s = 0, usd = 0;                ///< as simulated with `seed`
  std::optional<documents::SeedRuns> seeds;  ///< if several seeds were simulated

  /// A plan's: where else as many nodes with as many GPUs meet its goals in the same way, one for each region of a
  /// provider, cheapest first.
  std::vector<Launch> others;

  int gpus() const { return nodes * gpus_per_node; }
  bool spot() const { return market == "spot"; }
  /// The simulated policy rents the same nodes on demand where spot has none.
  bool falls_back() const;
};

/// Reads a result, the chosen candidate of a plan, or a run of a sweep: the one with the index `run`, or without an
/// index the cheapest that met its goals. Throws ConfigError if the document does not hold what a launch file needs: it
/// has no run or no chosen candidate, several pools or a TPU, or was written before results had the member "launch".
Launch read_launch(const report::Document& document, std::optional<std::size_t> run);

/// The container image that a launch file names if the user gives no image. No image is published under this name.
std::string placeholder_image();
/// The container image of --image, or placeholder_image() without one. Throws ConfigError for a value that cannot name
/// an image.
std::string image_of(const ExportValues& values);

/// Returns the options --run, --name, --command and --disk of launch files, followed by `more`.
std::vector<ExportOption> launch_options(std::vector<ExportOption> more);

/// Reads what to launch, and says on the console which run of a sweep was taken if the user chose no run. Throws
/// ConfigError for a model that `ganymede train` does not have, unless --command says how it is trained.
Launch launch_of(const report::Document& document, const ExportValues& values, const ExportConsole& console);

/// Returns a label (RFC 1035: small letters, digits and '-', a letter first) of at most `longest` characters for any
/// text, for example "dcgan-64-p3-8xlarge" for "dcgan-64-p3.8xlarge".
std::string label_of(const std::string& text, std::size_t longest);
/// Throws ConfigError unless `name` is such a label already.
void check_label(const std::string& flag, const std::string& name, std::size_t longest);

/// How the training is started on the nodes.
struct TrainCommand {
  std::string own;      ///< the user's command; empty: `ganymede train`
  std::string dataset;  ///< a path on the nodes, or "builtin"
  std::string folder;   ///< a path on the nodes, for checkpoints
};

/// The environment variables that the scripts read. Text that came from a file or a flag reaches a script only through
/// them: it is never part of a shell line, which it could end.
OrderedJson train_environment(const Launch& launch, const TrainCommand& command);

/// The shell line that trains. NODE_RANK, NUM_NODES, NUM_GPUS_PER_NODE, MASTER_ADDR and MASTER_PORT must be set before
/// it. `prefix` starts several processes (mpirun and its flags); it is empty on one node.
std::string train_line(const Launch& launch, const TrainCommand& command, const std::string& prefix);

/// The comment text at the head of a launch file: what it launches, what the simulation says of it, then the remarks.
std::string launch_summary(const Launch& launch, const TrainCommand& command);

// Texts in lines of a shell.

/// The text as one word of a POSIX shell, in single quotes.
inline std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Jobs for other schedulers that simulate a study in shards: what the exporters slurm and kubernetes have in common.

/// A study and how it is split.
struct SweepJob {
  std::string name;    ///< a label (launch.hpp), from --name or the study's name
  std::string title;   ///< the study's name as it stands
  std::string study;   ///< path of the study, as the user named it
  std::string folder;  ///< path of the folder of shards; empty: the exporter's own choice
  int shards = 1;
  int cpus = 1;  ///< of each shard, which runs as many simulations at once
};

/// The options that read_sweep_job() needs, except for `name`.
std::vector<ExportOption> sweep_job_options();

/// Reads a study's name. Throws ConfigError if the document is no study.
SweepJob read_sweep_job(const report::Document& document, const ExportValues& values);

/// Manifests of an indexed Job with a pod for each shard, a claim for their folder and a ConfigMap with the study.
/// Throws ConfigError if the study names files that pods do not have.
std::string kubernetes_sweep(const report::Document& document, const ExportValues& values, const std::string& image);

}  // namespace ganymede::exports
