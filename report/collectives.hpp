#pragma once
// Timed collectives for people and for CSV, from the JSON that programs get.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/wrap.hpp"

namespace ganymede {

/// `rows` is what `allreduce --format json` prints: size, scheme, time, algbw and busbw as in nccl-tests and what
/// limits it, then a ranking for each size; fitted to `width` columns (report/table.hpp).
std::string collectives_text(const nlohmann::json& rows, std::size_t width = kAnyWidth);
std::string collectives_csv(const nlohmann::json& rows);
/// The messages of rows that have "spans" ([source, destination, round, bytes, start, end]) as a Chrome trace; what is
/// no rank is a switch.
std::string collectives_timeline(const nlohmann::json& rows, int ranks);

}  // namespace ganymede
