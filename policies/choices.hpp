#pragma once
// What policies have in common when they choose.

#include "policies/policy.hpp"

namespace ganymede {

/// Nodes that the scenario asks for, over all pools; at least one.
int asked_nodes(const Observation& seen);

/// All nodes in one pool, as many as it may hold; none anywhere if `pool` is negative.
Decision all_in(const Observation& seen, int pool, int nodes);

// Of the first pool alone, whose size the elastic policies change.

/// Nodes held or on their way; what is requested before there are any.
int nodes_now(const Observation& seen);
/// That many in the first pool, and elsewhere what is requested.
Decision with_first(const Observation& seen, int nodes);
/// The same, and remembers when it changed.
Decision change(const PolicyCall& call, int nodes);
/// Something is still booting or awaited, or what was measured was not measured with what is held now.
bool unsettled(const Observation& seen);
/// The share of the rented GPUs' time in which they do what the training needs. A step that is bound by input or
/// communication does not get faster with more GPUs.
double useful(const Observation& seen);

/// The cheapest pool that is (not) on the spot market; -1: none.
int cheapest(const Observation& seen, bool spot);

/// The pool that is trained on now, or asked for; the first before there is any.
std::size_t place_now(const Observation& seen);
/// Its requests have not been met for ten minutes.
bool refused(const PoolView& pool);

/// The pool has refused a request for ten minutes, or did so less than an hour ago: without remembering, a policy that
/// withdraws its request would ask again at once.
bool refuses(const PolicyCall& call, int pool);

}  // namespace ganymede
