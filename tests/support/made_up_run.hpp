#pragma once
// Makes up the part of a run's result that its timeline is made of.

#include "common/json_value.hpp"

namespace ganymede {

/// A run of `total_s` seconds with these events, in the format of docs/schemas/result.json.
inline Json run_with(const Json& events, double total_s) {
  return {{"time", {{"total_s", total_s}}}, {"events", events}};
}

/// One event, of `nodes` nodes of the pool, or of the whole run if `nodes` is 0.
inline Json event(double at, const char* what, int nodes = 0, const char* pool = "p") {
  Json out = {{"at_s", at}, {"event", what}};
  if (nodes > 0) {
    out["nodes"] = nodes;
    out["pool"] = pool;
  }
  return out;
}

}  // namespace ganymede
