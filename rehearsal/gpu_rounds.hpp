#pragma once
// GPUs in place of the processes' own memory: a schedule as rounds of NCCL's messages.

#include <memory>
#include <string>
#include <vector>

#include "kernel/parallel/gpu_exchange.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/rank_plan.hpp"

namespace ganymede::rehearsal {

/// The messages of a rank's GPU. NCCL executes what a stream is given in its order, so that the lanes of a schedule
/// share rounds: those of the same number are one. It cannot deadlock, for the reason that Execution cannot.
std::vector<kernel::GpuRound> gpu_rounds(const RankPlan& plan);

/// Joins the GPUs of all ranks, each its own; null if `backend` is "cpu", or "auto" and there are not enough. `why_not`
/// says then why. Throws ConfigError on all ranks if `backend` is "cuda" and there are not enough.
std::unique_ptr<kernel::GpuExchange> join_gpus(Group& group, const std::string& backend, std::string& why_not);

}  // namespace ganymede::rehearsal
