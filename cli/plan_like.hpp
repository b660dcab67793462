#pragma once
// plan --like: what a task, script or manifest asks for, its price, and what would be cheaper.

#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/request_flags.hpp"
#include "plan/planner.hpp"
#include "report/compared.hpp"

namespace ganymede::cli {

/// The best candidate of the request with these replacements, as a plan finds it. `narrow` may change what was read.
report::Compared best_of(const RequestFlags& flags, const char* command, const std::string& name,
                         const std::vector<JsonOverride>& more, const plan::PlanOptions& search,
                         const std::function<void(plan::Request&)>& narrow = {});

/// Without a training the offers of an hour; with one also the training as the file asks, beside the best of all.
void run_like(const std::string& file, const RequestFlags& flags, Shared& shared);

}  // namespace ganymede::cli
