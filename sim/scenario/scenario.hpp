#pragma once
// A scenario, `ganymede.scenario/1`: what to train, on what, how, and what may happen meanwhile. It is read once,
// strictly, into a struct whose references all resolve; after that nothing is looked up by name.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"
#include "policies/policy.hpp"
#include "sim/scenario/input_cache.hpp"
#include "sim/scenario/pool.hpp"
#include "sim/scenario/storage.hpp"
#include "sim/scenario/synchronization.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::sim {

/// Pauses in which all GPUs stop training, for example to compute an FID or to write sample images.
struct Evaluation {
  enum class Every { steps, images, epochs, interval };
  Every every = Every::steps;
  double count = 1;     ///< Steps, images or epochs from one pause to the next.
  Seconds interval{0};  ///< For Every::interval: training time from one pause to the next.
  Seconds fixed{0};     ///< Part of a pause that takes as long on any number of GPUs.
  Seconds parallel{0};  ///< Part that the GPUs share out: it takes this time on one GPU.

  /// The length of a pause of `gpus` GPUs.
  Seconds pause(int gpus) const { return fixed + parallel / gpus; }
};

/// The number in "1000 steps" or "2epoch" for the units "steps" and "epoch", a whole one from 1; 0 if the text has
/// another unit or form.
double count_of(std::string_view text, std::string_view unit);

/// Reads an evaluation. `has_dataset`: the scenario states how many images an epoch has. Throws ConfigError for bad
/// input.
Evaluation read_evaluation(const JsonNode& node, bool has_dataset);

/// Something that becomes slower for a while, at random times.
struct Slowdown {
  Seconds every{0};  ///< Mean time between two starts: per node (straggler), or for the whole run (network, storage).
  /// Straggler: its steps take `factor` times as long. Network and storage: share of the rate that is left.
  double factor = 1;
  Seconds lasts{0};
};

/// One fault at a given time.
struct InjectedEvent {
  enum class Kind { interruption, crash, straggler, network, storage };
  Kind kind = Kind::interruption;
  Seconds at{0};
  std::size_t pool = 0;  ///< Index of the pool whose nodes it hits.
  int nodes = 1;
  double factor = 1;  ///< As Slowdown::factor; unused for interruptions and crashes.
  Seconds lasts{0};   ///< Duration; unused for interruptions and crashes.
};

struct Faults {
  std::optional<Seconds> crash;  ///< Mean time between crashes of one node.
  std::optional<Slowdown> straggler, network, storage;
  std::vector<InjectedEvent> events;
};

struct Dataset {
  std::string name;
  std::int64_t images = 0;
  double bytes_per_image = 0;  ///< Uncompressed; 0: not stated.
  double pixels = 0;           ///< Pixels of a stored image on average; 0: not stated.
};

enum class Fidelity {
  sampled,  ///< A sample of a configuration's steps is simulated, large enough for a precise mean.
  message,  ///< Every step of the run is simulated, message by message.
};

/// The unit of a run's target.
enum class Target { steps, epochs, images };

/// Charges of a run in addition to the hours of its nodes.
struct Charges {
  bool free_tiers = false;
  bool kubernetes = false, load_balancer = false;
  Seconds idle_tail{0};                         ///< How long the last nodes are held after the last step.
  Bytes download{0};                            ///< To the internet.
  bool whole_term = false;                      ///< Reserved nodes: the rest of the term after the run is charged too.
  std::optional<platforms::Storage> boot_disk;  ///< Each node has one.
  Bytes boot_disk_size{0};                      ///< Size of one disk.
  bool boot_disk_kept = false;  ///< An interrupted node's disk is kept until its pool's next node or the end.
};

/// The policy of a run and its settings.
struct PolicyChoice {
  const policies::Policy* policy = nullptr;
  std::vector<double> settings;                        ///< In the order of Policy::settings.
  Seconds every{600};                                  ///< Time between two consultations of a periodic policy.
  std::shared_ptr<const policies::PolicyTable> table;  ///< For policies that learn.
  std::vector<std::string> command;                    ///< External policies: the program and its arguments.
  Seconds limit{10};                                   ///< External policies: the longest time for one answer.
  bool blind = false;  ///< For control runs: hides from the policy what it would steer by.
};

struct Scenario {
  std::string file;
  std::string hash;               ///< Hash of scenario, trace and platforms: 16 hexadecimal digits.
  std::string hash_without_seed;  ///< The hash of everything but the seed.
  /// Hash of what the times of steps depend on: all but the seed, policy, faults, goals and places of the nodes.
  /// Scenarios with equal fingerprints share their step distributions.
  std::string step_fingerprint;
  std::string workload_fingerprint;  ///< Hash of what `trace` depends on.

  std::string content;  ///< The scenario as it was read, overrides included: JSON in one line.
  /// Hash of the content of each file that the scenario names, by the JSON pointer of the name ("/workload/trace").
  std::map<std::string, std::string> file_hashes;

  /// Scenarios of one trace that are read one after the other share it.
  std::shared_ptr<const traces::StepTrace> trace = std::make_shared<const traces::StepTrace>();
  std::vector<std::size_t> stages;   ///< Entries of trace.batches, one for each stage of a growing model; else one.
  std::vector<double> stage_shares;  ///< Share of the target that each stage takes; they sum to 1.
  double stage_variation = 0;        ///< Each stage's length varies with the seed by up to this share.
  /// Passes of a worker in a step, of `batch().batch` images each. Gradients are reduced after the last one.
  int accumulation_steps = 1;
  Dataset dataset;
  Target target = Target::steps;
  std::int64_t steps = 0;   ///< Steps of the whole run on the nodes that the scenario asks for.
  std::int64_t images = 0;  ///< Real images trained on: the last batch of an epoch may be padded.
  /// If the target is an FID of a model of recorded trainings: its images, of which `images` is the median, and the
  /// probability to get there.
  std::optional<calibration::TargetOutlook> quality;

  std::vector<ScenarioPool> pools;  ///< Pools that the scenario asks for come first.
  std::vector<PoolLink> links;
  std::vector<std::string> allowed_regions;  ///< Empty: all.
  Synchronization synchronization;
  ServerNodes servers;
  InputPath input;
  Checkpoints checkpoints;
  std::optional<Evaluation> evaluation;  ///< None: training never pauses for an evaluation.
  platforms::Provisioning provisioning;  ///< Delays of the first pool's platform, unless the scenario states others.
  bool boot_given = false;               ///< The scenario states "boot", which replaces an instance's own boot time.
  Faults faults;
  PolicyChoice policy;
  Charges charges;
  std::optional<Watts> power_cap;  ///< Power at which each GPU is capped.
  std::optional<Seconds> deadline;
  std::optional<MicroUsd> budget;
  Fidelity fidelity = Fidelity::sampled;
  double precision = 0.005;  ///< Relative half-width of the mean step's interval at which sampling stops.
  std::uint64_t seed = 0;
  int shown_steps = 0;                ///< Steps whose spans the result keeps; set by the caller, not by the file.
  std::vector<std::string> warnings;  ///< These name what the results leave out, and assumptions.

  /// The trace entry of the last stage: what a worker does in one pass.
  const traces::TraceBatch& batch() const { return trace->batches[stages.back()]; }
  /// GPUs that the scenario asks for.
  int workers() const;
  /// Images that a worker trains in a step, in all of its passes.
  std::int64_t batch_per_gpu() const { return std::int64_t{batch().batch} * accumulation_steps; }
  /// Images that a step on `workers` workers trains.
  std::int64_t images_a_step(int workers) const { return batch_per_gpu() * batches_a_step(synchronization, workers); }
};

/// Reads a scenario. Traces and hashes that `cache` already holds are not read again; without a cache, everything is
/// read. Throws ConfigError with file and pointer for bad input, Infeasible if the model does not fit the GPU's memory.
Scenario read_scenario(const JsonNode& node, ScenarioInputCache& cache);
Scenario read_scenario(const JsonNode& node);
/// Reads a scenario from a file, with `overrides` applied; their JSON pointers start at the scenario. Throws as above.
Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// Changes the seed and, with it, `hash`.
void set_seed(Scenario& scenario, std::uint64_t seed);
/// Returns the same scenario with another seed.
Scenario with_seed(Scenario scenario, std::uint64_t seed);

/// Sets the images and steps of a training that gets to its FID after `images`, which is at least 1. Only an evaluation
/// says so: where evaluations are images, steps or epochs apart, the training goes on to the first one that is not
/// before. Throws ConfigError if these are more than 10^12 images apart.
void train_to_fid(Scenario& scenario, std::int64_t images);

/// Returns the program and arguments that make the shell run `line` in `folder` (empty: the working directory).
std::vector<std::string> shell_command(const std::string& line, const std::filesystem::path& folder);

/// GPU memory that one worker needs, by the trace: the sum over all kinds except those on the host ("host...").
Bytes gpu_memory(const traces::TraceBatch& batch);

}  // namespace ganymede::sim
