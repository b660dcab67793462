#pragma once
// A bound on how far NCCL's tuner misjudges. Its cost model knows nothing of proxies, endpoints and staging through
// hosts, and what it chooses may be several times slower than another choice.

#include <optional>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {

/// Roughly the time of an all-reduce that follows a choice, from the costs of its schedule.
Seconds nccl_expected_time(const PlanRequest& request, const NcclChoice& choice, NcclVersion version);

/// The tuner's choice, unless over several nodes another one is expected to be faster by more than the bound: then the
/// fastest. Nullopt if nothing that `options` allow is enabled on the machine.
std::optional<NcclChoice> bounded_nccl_choice(const PlanRequest& request, const NcclOptions& options);

}  // namespace ganymede::sim
