#pragma once
// A plan as people read it.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

/// Of `ganymede.plan/1`: what was searched, the candidates to choose from with the chosen one marked, the Pareto set,
/// the near misses and why they failed.
std::string plan_text(const nlohmann::json& plan);
/// All simulated candidates, a row each.
std::string plan_csv(const nlohmann::json& plan);

}  // namespace ganymede
