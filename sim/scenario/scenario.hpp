#pragma once
// A scenario, `ganymede.scenario/1`: what to train, on what, how, and what may happen meanwhile. Read once, strictly,
// into a struct whose references all resolve; past this point nothing is looked up by name.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "platforms/platform.hpp"
#include "policies/policy.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/scenario/series.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

struct Dataset {
  std::string name;
  std::int64_t images = 0;
  double bytes_per_image = 0;
};

enum class Fidelity { sampled, message };

/// What a target counts.
enum class Target { steps, epochs, images };

/// How long a rented node stays.
struct Lifetimes {
  enum class Kind {
    exponential,  ///< a constant hazard: `mean`
    /// Many die young and the rest at the end of `most`, as Kadupitiya et al. (HPDC 2020) measured on preemptible GPUs
    /// of Google Cloud: F(t) = A (1 - exp(-t / t1) + exp((t - b) / t2)) with A 0.475, t1 1 h, t2 0.8 h, b = `most`.
    bathtub,
  };
  Kind kind = Kind::exponential;
  Seconds mean{0}, most{0};
  Seconds back_after{0};  ///< mean time after which the pool has nodes again; 0: at once
  std::string source;     ///< for people
};

/// Who says when the nodes of a pool are to be had and taken back.
enum class Spot {
  none,           ///< nobody: they are not spot nodes
  uninterrupted,  ///< the scenario or the user's platform: they are never taken back
  stated,         ///< `lifetimes`, of the scenario or of the user's platform
  recorded,       ///< `capacity`
  calm,           ///< the model of measured zones: a zone that is better than nine in ten,
  typical,        ///< one in the middle,
  harsh,          ///< one that is worse than nine in ten,
  drawn,          ///< or one that the seed draws: where nobody says anything
};
constexpr bool is_modelled(Spot spot) { return spot >= Spot::calm; }
/// How sure it is: "none", "stated", "measured", "preset" or "assumed".
std::string_view risk_of(Spot spot);
/// That of the two which is less sure; "" is surer than all.
std::string less_sure(std::string_view a, std::string_view b);
/// What a scenario says under "spot".
struct SpotWish {
  Spot how = Spot::drawn;
  std::optional<Series> capacity;
};

/// One thing that may be rented: what the scenario asks for, or what its policy may use besides.
struct ScenarioPool {
  std::string name;  ///< "p3.8xlarge us-east-1 spot", or the user's own
  std::string catalog;
  std::shared_ptr<const Platform> platform;
  std::string zone;  ///< of the region; empty: any, all its pools in one
  Pool pool;         ///< nodes: asked for by the scenario; 0 where only the policy may
  int most = 0;      ///< nodes at once
  Price price;
  Spot spot = Spot::none;
  std::optional<SpotWish> spot_wish;     ///< also for spot pools that the policy may use besides
  std::optional<Lifetimes> lifetimes;    ///< spot
  Seconds notice{0};                     ///< before a node is taken back
  std::optional<Series> capacity;        ///< nodes that can be had
  std::optional<Series> prices, carbon;  ///< USD an hour of one node; g/kWh

  const Instance& instance() const {
    if (!found || found->name != pool.instance) found = &platform->instance(pool.instance);
    return *found;
  }
  const Gpu& gpu() const { return platform->gpu_of(instance()); }

  /// What instance() has found: runs ask for it at each event, and platforms have many instances.
  mutable const Instance* found = nullptr;
};

/// Joins two pools that are not in one place.
struct PoolLink {
  std::size_t a = 0, b = 0;
  BytesPerSecond bandwidth{0};
  Seconds latency{0};
  double usd_per_gb = 0;  ///< of what crosses it, 1e9 bytes
  enum class Between { zones, regions, clouds } between = Between::regions;
};

enum class Mode { all_reduce, async_parameter_server, local_sgd, gossip };
enum class Placement { data_parallel, component_split };

struct Synchronization {
  Mode mode = Mode::all_reduce;
  Placement placement = Placement::data_parallel;
  Scheme scheme;
  bool overlap = true;
  std::optional<double> jitter;  ///< standard deviation of workers' steps, relative, instead of the workload's spread
  int backup_workers = 0;        ///< all-reduce: so many of the slowest are not waited for
  int local_steps = 1;           ///< local-sgd: steps between two averagings
  bool by_speed = false;         ///< batches in proportion to the workers' speed; the sum stays
  double secure_bytes = 1;       ///< local-sgd: bytes of an update under secure aggregation, over those without
  Seconds secure_cpu_per_gb{0};  ///< CPU time of masking or encrypting 1e9 bytes of it
};

/// Batches that so many workers load and train on in a step: one each; a pair that shares out the two networks has one.
int batches_loaded(const Synchronization& synchronization, int workers);
/// Those of them that count: what backup workers drop is not trained on. Images a step, epochs, targets and whatever
/// else follows from a batch are counted by this.
int batches_a_step(const Synchronization& synchronization, int workers);

/// Machines of their own that hold the weights of asynchronous training, rented on demand from the request to the end.
struct ServerNodes {
  int nodes = 0;         ///< 0: the workers' nodes hold the weights
  std::string instance;  ///< of the first pool's platform
  Price price;
};

/// How much of a storage is rented; where each node has a volume of its own, of one of them.
struct Volume {
  Bytes size{0};          ///< as it is sold; 0: an object store, or a volume whose size costs nothing
  double extra_iops = 0;  ///< above what comes with it
  double extra_rate = 0;  ///< likewise, in MB/s or MiB/s as the storage's rates have it
};

/// Between storage and GPU.
struct InputPath {
  enum class Cache { memory, disk, none };
  std::optional<Storage> storage;  ///< none: the dataset is local
  Volume volume;
  Cache cache = Cache::memory;  ///< what holds it after the first epoch, where it fits
  int prefetch = 2;             ///< batches
  double compressed = 1;        ///< bytes as stored over `bytes_per_image`
  Seconds decompress{0};        ///< CPU time of one image
  double images_per_request = 1;
};

struct Checkpoints {
  enum class Every { never, interval, epochs, daly };
  Every every = Every::never;
  Seconds interval{0};
  std::int64_t epochs = 0;
  Bytes bytes{0};
  std::optional<Storage> storage;
  Volume volume;
  bool on_notice = true;  ///< one more before a node goes that has given notice, if the time suffices
};

/// Something that gets slower for a while, at random.
struct Slowdown {
  Seconds every{0};   ///< mean time between two starts: of one node, or of the whole
  double factor = 1;  ///< times as long (straggler), or that share of the rate (network, storage)
  Seconds lasts{0};
};

struct InjectedEvent {
  enum class Kind { interruption, crash, straggler, network, storage };
  Kind kind = Kind::interruption;
  Seconds at{0};
  std::size_t pool = 0;
  int nodes = 1;
  double factor = 1;
  Seconds lasts{0};
};

struct Faults {
  std::optional<Seconds> crash;  ///< mean time between crashes of one node
  std::optional<Slowdown> straggler, network, storage;
  std::vector<InjectedEvent> events;
};

/// What a run is charged for besides its nodes' hours, and how.
struct Charges {
  bool free_tiers = false;
  bool kubernetes = false, load_balancer = false;
  Seconds idle_tail{0};     ///< that the last nodes are held after the last step
  Bytes download{0};        ///< to the internet
  bool whole_term = false;  ///< reserved nodes: what is left of the term after the run is charged too
  /// Of each node.
  std::optional<Storage> boot_disk;
  Bytes boot_disk_size{0};
  bool boot_disk_kept = false;  ///< of an interrupted node, until the next one of its pool comes or the run ends
};

/// The policy and what it is set to.
struct PolicyChoice {
  const Policy* policy = nullptr;
  std::vector<double> settings;
  Seconds every{600};  ///< between two looks of a periodic policy
  std::shared_ptr<const PolicyTable> table;
  std::vector<std::string> command;  ///< external
  Seconds limit{10};                 ///< external: for one answer
  bool blind = false;                ///< sees only what it holds, for checking that seeing is what it lives on
};

struct Scenario {
  std::string file;
  std::string hash;      ///< of the scenario, its trace and its platforms: 16 hexadecimal digits
  std::string seedless;  ///< the same without the seed
  std::string physics;   ///< the same without seed, policy, faults and goals: what the steps' times depend on

  StepTrace trace;
  std::vector<std::size_t> stages;   ///< entries of trace.batches, one a stage of a growing model; else one
  std::vector<double> stage_shares;  ///< of the target; they sum to 1
  double stage_variation = 0;        ///< each stage's length varies by seed by up to this share
  Dataset dataset;
  Target target = Target::steps;
  std::int64_t steps = 0;   ///< of the whole run on the allocation that the scenario asks for
  std::int64_t images = 0;  ///< real images trained on: the last batch of an epoch may be padded

  std::vector<ScenarioPool> pools;  ///< those asked for first
  std::vector<PoolLink> links;
  std::vector<std::string> allowed_regions;  ///< empty: all
  Synchronization synchronization;
  ServerNodes servers;
  InputPath input;
  Checkpoints checkpoints;
  Provisioning provisioning;  ///< the first pool's platform's, and what the scenario says instead
  bool boot_given = false;    ///< by the scenario: then it also stands instead of an instance's own
  Faults faults;
  PolicyChoice policy;
  Charges charges;
  std::optional<Watts> power_cap;  ///< of each GPU
  std::optional<Seconds> deadline;
  std::optional<MicroUsd> budget;
  Fidelity fidelity = Fidelity::sampled;
  double precision = 0.005;  ///< relative half-width at which sampling stops
  std::uint64_t seed = 0;
  int shown_steps = 0;                ///< whose spans the result keeps: the caller's wish, not the file's
  std::vector<std::string> warnings;  ///< what it asks for that a run leaves out

  const TraceBatch& batch() const { return trace.batches[stages.back()]; }
  int workers() const;  ///< of what the scenario asks for
  /// Images that a step trains on `workers` of them.
  std::int64_t images_a_step(int workers) const {
    return std::int64_t{batch().batch} * batches_a_step(synchronization, workers);
  }
};

/// ConfigError with file and pointer for anything that is wrong, Infeasible if the model does not fit the GPU's memory.
Scenario read_scenario(const JsonNode& node);
void set_seed(Scenario& scenario, std::uint64_t seed);
/// The same scenario with another seed.
Scenario with_seed(Scenario scenario, std::uint64_t seed);
/// The file's, or that of the candidate which a `ganymede.plan/1` has chosen; overrides are of the scenario.
Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// The words that have the shell run `line`, started in `folder`.
std::vector<std::string> shell_command(const std::string& line, const std::filesystem::path& folder);

/// GPU memory of one worker, from the trace: the sum over its kinds, without those on the host ("host...").
Bytes gpu_memory(const TraceBatch& batch);

}  // namespace ganymede
