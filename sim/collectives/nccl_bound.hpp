#pragma once
// A bound on how far NCCL's tuner misjudges. Its cost model knows nothing of proxies, endpoints and staging through
// hosts, and what it chooses may be several times slower than another choice.

#include <optional>
#include <string>

#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {

/// Roughly the time of an all-reduce that follows a choice, from the costs of its schedule.
Seconds nccl_expected_time(const PlanRequest& request, const NcclChoice& choice, NcclVersion version);

/// The tuner's choice, unless over several nodes the fastest one is expected to send twice as many bytes in less than
/// its time divided by 1.31: then the fastest for these bytes. So times hardly fall where sizes rise. Nullopt if
/// nothing that `options` allow is enabled on the machine.
std::optional<NcclChoice> bounded_nccl_choice(const PlanRequest& request, const NcclOptions& options);

/// Says which version is assumed and by what factor an all-reduce of `bytes` would take another time with older ones,
/// by the closed form of what the tuner chooses; "" if the variant names a version or forces an algorithm. With
/// `least`, "" too if no platform states the version and no other changes the time by that share.
std::string nccl_version_effect(const Topology& topology, std::int64_t bytes, const std::string& variant,
                                double least = 0);

}  // namespace ganymede::sim
