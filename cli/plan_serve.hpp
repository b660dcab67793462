#pragma once
// plan --serve: what to rent for a trained generator that answers requests.

#include <string>

#include "cli/command.hpp"
#include "cli/request_flags.hpp"

namespace ganymede::cli {

/// `rate` is "50/s", "3000/min" or "100k/h"; `p95` a duration. The flags say the generator and what may be rented;
/// throws ConfigError for one that says something else.
void run_plan_serve(const std::string& rate, const std::string& p95, const RequestFlags& flags, Shared& shared);

}  // namespace ganymede::cli
