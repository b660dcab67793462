#pragma once
// Simulates made-up scenarios and returns their results as text or as JSON.

#include <string>

#include "common/json_value.hpp"
#include "common/process.hpp"
#include "sim/engine/simgrid_module.hpp"
#include "sim/run/simulate.hpp"
#include "sim/scenario/scenario_files.hpp"

namespace ganymede::sim {

/// Simulates in a child process, because SimGrid allows one engine a process, and returns the text of the result.
inline std::string simulate_text(const Scenario& scenario) {
  if (scenario.fidelity == Fidelity::message) simgrid_module();  // once for all children
  return run_child([&] { return documents::result_text(simulate(scenario)); });
}
inline Json simulate_json(const Scenario& scenario) { return Json::parse(simulate_text(scenario)); }

constexpr double kBoot = 90;  ///< seconds that a node of the made-up platform takes to boot

inline double number(const Json& run, const char* pointer) { return run.at(JsonPointer(pointer)).get<double>(); }

}  // namespace ganymede::sim
