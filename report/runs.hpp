#pragma once
// Simulated runs as text and as CSV. They are made from the result JSON, so that they cannot contradict it.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/result.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// True if spot capacity or faults affected the run, so that another seed gives another result.
bool by_chance(const documents::Result& run);

/// The runs of a ganymede.sweep/1. Throws ConfigError for one that is no result.
std::vector<documents::Result> runs_of(const Json& sweep);

/// Returns a ganymede.result/1 in full. Tables and prose fit `width` columns (table.hpp), here and below.
std::string run_text(const Json& document, std::size_t width = kAnyWidth);
/// Returns a ganymede.result/1 as CSV.
std::string run_csv(const Json& run);

/// Returns a ganymede.sweep/1 as a table that marks the cheapest and the fastest run. The speed-up of a run compares
/// it, at equal images trained, with the first run on the same platform that has the fewest GPUs.
std::string sweep_text(const Json& sweep, std::size_t width = kAnyWidth);
/// Returns a ganymede.sweep/1 as CSV with one line for each run.
std::string sweep_csv(const Json& sweep);

}  // namespace ganymede::report
