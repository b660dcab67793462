#pragma once
// What a run held when, and its steps, from a result's events and spans.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ganymede {

/// Nodes of a pool between two changes.
struct Holding {
  std::string pool;
  double from_s = 0, to_s = 0;
  int held = 0;   ///< granted and started
  int asked = 0;  ///< requested, not there yet
};

/// Of a `ganymede.result/1`, in time order of each pool; stretches with neither are left out.
std::vector<Holding> holdings_of(const nlohmann::json& run);

/// A Chrome trace for ui.perfetto.dev: the cluster's pools and what happened to them over the run, and the steps of its
/// `step_spans`, which begin where training begins: of each worker its own course, its collectives, its input pipeline.
std::string run_trace(const nlohmann::json& run);

}  // namespace ganymede
