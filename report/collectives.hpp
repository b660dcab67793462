#pragma once
// Timed collectives for people and for CSV, from the JSON that programs get.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

/// `rows` is what `allreduce --format json` prints: size, scheme, time, algbw and busbw as in nccl-tests and what
/// limits it, then a ranking for each size.
std::string collectives_text(const nlohmann::json& rows);
std::string collectives_csv(const nlohmann::json& rows);

}  // namespace ganymede
