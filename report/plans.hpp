#pragma once
// A plan as people read it.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/wrap.hpp"

namespace ganymede {

/// Of `ganymede.plan/1`: what was searched, the candidates to choose from with the chosen one marked, the Pareto set,
/// the near misses and why they failed; fitted to `width` columns (report/table.hpp).
std::string plan_text(const nlohmann::json& plan, std::size_t width = kAnyWidth);
/// All simulated candidates, a row each.
std::string plan_csv(const nlohmann::json& plan);

}  // namespace ganymede
