#pragma once
// Allocation policies decide what to rent: Observation -> Decision. A policy is a pure function. Its memory and its
// random numbers are arguments, it reads no clock, and it observes only what the controller of a real run could: no
// stage lengths, no future prices, and of the capacity only whether its own requests are granted.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede::policies {

/// Nodes of one instance type that are rented in one region on one market.
struct Pool {
  std::string instance, region;
  platforms::Market market = platforms::Market::on_demand;
  int nodes = 0;
  int gpus_per_node = 0;
  bool operator==(const Pool&) const = default;
};

/// A pool as the controller of a run observes it.
struct PoolView {
  platforms::Market market = platforms::Market::on_demand;
  int gpus_per_node = 1;
  int requested = 0;        ///< nodes that the scenario asks for; 0: a policy may use the pool
  int most = 0;             ///< largest number of nodes that may be held at once
  int ready = 0;            ///< nodes that are held and usable, without those under notice
  int starting = 0;         ///< nodes that are granted and still booting
  int waiting = 0;          ///< nodes that are asked for and not granted
  int noticed = 0;          ///< nodes under notice: held, but taken back shortly
  Seconds refused_for{0};   ///< how long the oldest request has waited without a grant
  int lost = 0;             ///< nodes taken back or crashed so far
  double usd_per_hour = 0;  ///< current price of one node in dollars an hour
  double speed = 1;         ///< speed of one of its GPUs on this workload by data sheet, relative to the first pool's
  std::optional<double> g_per_kwh;  ///< current carbon intensity of its region
  double gpu_watts = 0;             ///< power of one node's GPUs at full load; 0: not stated
  double usd_to_enter = 0;          ///< dollars that moving the dataset and a checkpoint there costs
  int held() const { return ready + starting; }
};

/// The view of a policy. Rates and shares are those of the last interval of observation; they are 0 before the
/// first step.
struct Observation {
  Seconds now{0};  ///< since the request
  std::vector<PoolView> pools;
  bool training = false;
  double done = 0, left = 0;  ///< parts of the target, in its unit (steps or images)
  double rate = 0;            ///< units of the target per second of training
  int training_gpus = 0;      ///< GPUs with which `rate` was measured
  double step_s = 0;          ///< seconds of the mean step
  double gpu_busy = 0;        ///< share of a training GPU's time that it spends in the step's phases
  double exposed = 0;         ///< share of its time that a GPU waits for communication
  double straggler = 0;       ///< share that it waits for slower workers
  double input_stall = 0;     ///< share that it waits for input
  double cpu = 0;             ///< share of the vCPUs at work
  double memory = 0;          ///< share of the GPU's memory in use
  double host_memory = 0;     ///< share of the host's memory that the dataset's cache takes
  double pause_s = 0;         ///< seconds of pauses for checkpoints and evaluations, for each unit of the target
  Seconds evaluation{0};      ///< length of one evaluation's pause
  Seconds save{0};            ///< time to write a checkpoint, as before all nodes are changed and at the end
  Seconds restart{0};         ///< time that a change of the allocation takes: stop, start, load
  Seconds boot{0};            ///< time from a grant to a usable node
  Seconds every{0};           ///< time until a periodic policy is asked again at the latest
  Seconds since_durable{0};   ///< training time that a sudden loss would cost now
  double spent_usd = 0;
  std::optional<Seconds> deadline;  ///< since the request
  std::optional<double> budget_usd;
};

/// A policy's answer: what is to be rented from now on.
struct Decision {
  std::vector<int> nodes;  ///< number of nodes by pool, without those under notice
  bool elastic = true;     ///< trains with the ready nodes while others are awaited; false: only with all of them
  bool pause = false;      ///< keeps what is held but does not train
  /// Shares of each node's vCPUs and memory that the job reserves. Fewer vCPUs decode more slowly; less memory may be
  /// too little for the dataset's cache.
  double cpus = 1, memory = 1;
};

/// A number that a scenario may set beside the policy's name.
struct PolicySetting {
  std::string_view name;
  double default_value;
  double low, high;  ///< the range that is accepted, ends included
  std::string_view meaning;
};

/// Named numbers that a policy keeps between calls; empty at the start of a run.
using PolicyMemory = std::map<std::string, double, std::less<>>;

/// Table of a policy that learns: for each state the value of each action.
using PolicyTable = std::map<std::string, std::vector<double>>;

/// All that a policy may use to decide.
struct PolicyCall {
  const Observation& observation;
  std::span<const double> settings;  ///< in the order of Policy::settings
  PolicyMemory& memory;
  RandomStream& random;
  const PolicyTable* table = nullptr;  ///< the learned table; not null for a policy with `learns`
};

/// A policy as it describes itself; `list`, schemas, scenarios, plans and the page of `serve` read it from here.
struct Policy {
  std::string_view name, summary;
  std::string_view source;  ///< who proposed it, and where it is described
  std::span<const PolicySetting> settings = {};
  bool periodic = true;         ///< decides at regular intervals too, not only when something has happened
  bool other_market = false;    ///< may rent the same instances on a market that the scenario does not ask for
  bool other_regions = false;   ///< may rent in regions that the scenario does not ask for
  bool never_changes = false;   ///< always asks for what the scenario asks for, and trains with nothing less
  bool price_blind = false;     ///< with one pool for each market, decides the same at any prices
  bool needs_deadline = false;  ///< steers by the scenario's deadline
  bool needs_budget = false;    ///< steers by the scenario's budget
  bool learns = false;          ///< decides by a PolicyTable that must be trained first
  bool plan_default = false;    ///< tried by a plan whose request names no policies
  bool spot_only = false;       ///< equals the default policy on other markets, so that a plan tries it only on spot
  Decision (*decide)(const PolicyCall& call) = nullptr;  ///< null: a program of the user decides
};

/// The register, in the order in which policies are listed; the first is the default.
std::span<const Policy> policies();
/// The policy of a scenario that names none.
const Policy& default_policy();
/// The policy of that name; nullptr if there is none.
const Policy* find_policy(std::string_view name);
std::vector<std::string> policy_names();

}  // namespace ganymede::policies
