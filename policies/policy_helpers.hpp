#pragma once
// Functions that several policies use to decide.

#include "policies/policy.hpp"

namespace ganymede::policies {

/// The setting of policies that steer by a deadline or a budget.
inline constexpr PolicySetting kMarginSetting{"margin", 0.05, 0, 10,
                                              "share that the rest may take longer than measured"};

// Functions about all pools.

/// Nodes that the scenario asks for, by pool.
std::vector<int> requested_nodes(const Observation& observation);
/// Nodes that are held, booting or asked for now, by pool.
std::vector<int> current_nodes(const Observation& observation);
/// Nodes that the scenario asks for in all pools together; at least 1.
int total_requested_nodes(const Observation& observation);
/// Seconds until the target is met at `rate` units per second; infinite at rate 0.
double seconds_left(const Observation& observation, double rate);

/// Rents `nodes` nodes in one pool, or as many as it may hold, and none in the others; none at all if `pool` is
/// negative.
Decision rent_in_one_pool(const Observation& observation, int pool, int nodes);
/// Index of the pool whose nodes cost least an hour, among the spot pools if `spot` is true, else among the others; -1
/// if there is none.
int cheapest_pool(const Observation& observation, bool spot);
/// Index of the pool in which most nodes are held or asked for; 0 before there are any.
std::size_t current_pool(const Observation& observation);

/// True if the pool's oldest request has waited for more than ten minutes.
bool is_refusing(const PoolView& pool);
/// True if the pool refuses now, or if less than an hour ago a pool with which this was called did. The time is kept in
/// the policy's memory, because a policy that withdraws a refused request would otherwise ask again at once.
bool refused_recently(const PolicyCall& call, int pool);

// Functions about the first pool, whose size the elastic policies change.

/// Nodes that are held, booting or asked for in the first pool; what the scenario asks for before there are any.
int first_pool_nodes(const Observation& observation);
/// Rents `nodes` nodes in the first pool, from 1 to as many as it may hold, and in the others what the scenario asks
/// for.
Decision resize_first_pool(const Observation& observation, int nodes);
/// The same, and remembers as "changed_at" when the number of nodes last changed, in seconds since the request.
Decision resize_and_remember(const PolicyCall& call, int nodes);
/// True while nothing trains, while nodes of the first pool are booting or awaited, and while the number of training
/// GPUs is not that of the first pool's ready nodes.
bool is_unsettled(const Observation& observation);
/// Share of the rented GPUs' time in which they compute: 1 minus the shares in which they wait for communication,
/// stragglers and input. A step that is bound by any of these does not get faster with more GPUs.
double useful_share(const Observation& observation);

// The rate model: how the speed of training depends on the number of GPUs. n GPUs are n / (1 + c (n - 1)) times as fast
// as one, where c is the share of communication (Amdahl's law with a constant batch on each GPU, as in Optimus, Peng et
// al., EuroSys 2018).

/// Adds what is observed to the model in `memory`; forgets older points when the speed of the same GPUs has changed.
void learn_rate(const Observation& observation, PolicyMemory& memory);
/// Units of the target per second on `gpus` GPUs, by the model in `memory`; 0 before the first observation of a rate.
double predicted_rate(const PolicyMemory& memory, double gpus);
/// Seconds that the rest takes on `gpus` GPUs by that model, with the pauses for checkpoints and evaluations; infinite
/// before the first observation of a rate.
double predicted_seconds(const PolicyCall& call, double gpus);
/// How many times as long the rest takes as at its present `rate`, above 0. No policy knows what is still to come: if
/// training has become slower (a network that grows, for example), the time of a unit goes on growing as steeply.
double growth(const PolicyCall& call, double rate);

}  // namespace ganymede::policies
