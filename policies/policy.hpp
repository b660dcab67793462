#pragma once
// Allocation policies: Observation -> Decision, nothing else. A policy is a pure function: what it remembers and the
// random numbers it draws are arguments, it reads no clock, and it sees only what a controller of a real run could see
// at that moment: no stage lengths, no future prices, no capacity beyond what its own requests have met.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede {

/// Some nodes of the same instance type, all at one price.
struct Pool {
  std::string instance, region;
  Market market = Market::on_demand;
  int nodes = 0;
  int gpus_per_node = 0;
  bool operator==(const Pool&) const = default;
};

/// A pool as a controller sees it.
struct PoolView {
  Market market = Market::on_demand;
  int gpus_per_node = 1;
  int requested = 0;                ///< nodes that the scenario asks for; 0: it may be used, but nobody asked
  int most = 0;                     ///< nodes that may be held at once
  int ready = 0;                    ///< held and usable, those under notice left out
  int starting = 0;                 ///< granted, still booting
  int waiting = 0;                  ///< asked for, not granted
  int noticed = 0;                  ///< held, to be taken back shortly
  Seconds refused_for{0};           ///< how long the oldest request has waited without a grant
  int lost = 0;                     ///< nodes taken back or crashed so far
  double usd_per_hour = 0;          ///< of one node, now
  double speed = 1;                 ///< of one of its GPUs on this workload by data sheet, the first pool's being 1
  std::optional<double> g_per_kwh;  ///< carbon intensity of its region, now
  double gpu_watts = 0;             ///< of one node's GPUs at full load; 0: not stated
  double usd_to_enter = 0;          ///< moving dataset and checkpoint there
  int held() const { return ready + starting; }
};

/// What a policy may look at. Rates are those of the last interval of observation; all 0 before the first step.
struct Observation {
  Seconds now{0};  ///< since the request
  std::vector<PoolView> pools;
  bool training = false;
  double done = 0, left = 0;  ///< of the target, in its unit (steps or images)
  double rate = 0;            ///< units a second while training
  int training_gpus = 0;      ///< that the rate was measured with
  double step_s = 0;          ///< of the mean step
  double gpu_busy = 0;        ///< share of a training GPU's time in the step's phases
  double exposed = 0;         ///< share waiting for communication
  double straggler = 0, input_stall = 0;
  double cpu = 0;            ///< share of the vCPUs at work
  double memory = 0;         ///< share of the GPU's memory in use
  double host_memory = 0;    ///< share of the host's memory that the dataset's cache takes
  Seconds restart{0};        ///< what a change of the allocation costs: stop, start, load
  Seconds boot{0};           ///< from a grant to a usable node
  Seconds since_durable{0};  ///< training that a sudden loss would cost now
  double spent_usd = 0;
  std::optional<Seconds> deadline;  ///< since the request
  std::optional<double> budget_usd;
};

/// What is to be rented from now on.
struct Decision {
  std::vector<int> nodes;  ///< by pool; noticed nodes do not count
  bool elastic = true;     ///< train with what there is while more is awaited; else only with all of it
  bool pause = false;      ///< keep what is held but do not train
  /// Shares of each node's vCPUs and memory that the job reserves: fewer processors decode more slowly, less memory may
  /// not hold the dataset's cache.
  double cpus = 1, memory = 1;
};

/// A number that a scenario may set beside the policy's name.
struct PolicySetting {
  std::string_view name;
  double otherwise, low, high;
  std::string_view meaning;
};

/// What a policy remembers between calls; empty at the start of a run.
using PolicyMemory = std::map<std::string, double, std::less<>>;

/// A learned policy's table, by state and action.
using PolicyTable = std::map<std::string, std::vector<double>>;

/// Everything a policy may use.
struct PolicyCall {
  const Observation& seen;
  std::span<const double> settings;  ///< in the order of the policy's list
  PolicyMemory& memory;
  RandomStream& random;
  const PolicyTable* table = nullptr;  ///< of a policy that learns
};

struct Policy {
  std::string_view name, summary;
  std::string_view source;  ///< whose idea, and where it is described
  std::span<const PolicySetting> settings = {};
  /// It wants to look at regular intervals too, not only when something has happened.
  bool periodic = true;
  /// May use pools that the scenario did not ask for: the same instances on another market, or in other regions.
  bool other_market = false, other_regions = false;
  bool learns = false;                                   ///< needs a table
  Decision (*decide)(const PolicyCall& call) = nullptr;  ///< null: a program of the user's decides
};

/// The only list; `list policies` and the tests walk it.
std::span<const Policy> policies();
/// nullptr: there is no such policy.
const Policy* find_policy(std::string_view name);

// Pieces that several policies share.

/// What the scenario asks for.
std::vector<int> requested_nodes(const Observation& seen);
/// What is held or on its way now.
std::vector<int> current_nodes(const Observation& seen);
/// Seconds until the target is met at this rate; infinite at rate 0.
double time_left(const Observation& seen, double rate);
/// Dollars an hour of so many nodes by pool.
double hourly(const Observation& seen, std::span<const int> nodes);
/// GPUs of so many nodes by pool, each counted by its speed.
double weighted_gpus(const Observation& seen, std::span<const int> nodes);

/// How step time depends on the number of GPUs, learned from what was seen: the speed of n GPUs is
/// n / (1 + c (n - 1)) times that of one, with one shared c, the communication's share (Amdahl's law with batch per GPU
/// held, as in Optimus, Peng et al., EuroSys 2018).
double predicted_rate(const Observation& seen, const PolicyMemory& memory, double gpus);
/// Adds the observation to what predicted_rate knows; forgets when the speed at the same allocation has changed.
void learn_rate(const Observation& seen, PolicyMemory& memory);

Decision decide_fixed(const PolicyCall& call);
Decision decide_resource_aware(const PolicyCall& call);
Decision decide_predictive(const PolicyCall& call);
Decision decide_q_learning(const PolicyCall& call);
Decision decide_spot_first(const PolicyCall& call);
Decision decide_uniform_progress(const PolicyCall& call);
Decision decide_deadline(const PolicyCall& call);
Decision decide_budget(const PolicyCall& call);
Decision decide_cheapest_region(const PolicyCall& call);
Decision decide_carbon_aware(const PolicyCall& call);
Decision decide_kubernetes_autoscaler(const PolicyCall& call);

/// State and actions of q-learning, for whoever trains its table.
inline constexpr std::size_t kQActions = 3;  ///< halve, keep, double the nodes of the first pool
std::string q_state(const Observation& seen);
int q_nodes(const Observation& seen, std::size_t action);

}  // namespace ganymede
