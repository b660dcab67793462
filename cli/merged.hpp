#pragma once
// Words on shards of a plan or of learners, which `merge` says as `plan` and `learn` do.

#include <string>

#include "cli/command.hpp"
#include "plan/learn.hpp"
#include "plan/planner.hpp"

namespace ganymede::cli {

/// Says how much a learned table costs on seeds on which it was not trained, beside the other policies.
std::string judgement_text(const plan::LearnedTable& learned, const plan::LearnOptions& options);

/// If nothing meets the plan's goals, says so with what comes nearest, and sets the exit code.
void report_goals(const plan::Request& request, const plan::Plan& plan, Shared& shared);

}  // namespace ganymede::cli
