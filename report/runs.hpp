#pragma once
// Simulated runs for people: one run in full, many as a table. Both read the JSON that programs get, so that they
// cannot say anything else.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/wrap.hpp"

namespace ganymede {

/// Whether spot capacity or faults decided the run: another seed fares otherwise.
bool by_chance(const nlohmann::json& run);

/// `run` is a ganymede.result/1. Tables and prose fit `width` columns (report/table.hpp), here and below.
std::string run_text(const nlohmann::json& run, std::size_t width = kAnyWidth);
std::string run_csv(const nlohmann::json& run);

/// `sweep` is a ganymede.sweep/1. Cheapest and fastest run are marked; speed-up is against the first run on the same
/// platform with the fewest GPUs, at equal images trained.
std::string sweep_text(const nlohmann::json& sweep, std::size_t width = kAnyWidth);
std::string sweep_csv(const nlohmann::json& sweep);

}  // namespace ganymede
