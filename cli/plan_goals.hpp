#pragma once

#include "cli/command.hpp"
#include "plan/planner.hpp"

namespace ganymede::cli {

/// If nothing meets the plan's goals, says so with what comes nearest, and sets the exit code.
void report_goals(const plan::Request& request, const plan::Plan& plan, Shared& shared);

}  // namespace ganymede::cli
