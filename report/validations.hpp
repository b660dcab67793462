#pragma once
// `ganymede.validation-result/1` for people.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

/// Each study: its assumptions (in full only if `details`), what was fitted, its cells, claims and promises; then the
/// summary over all.
std::string validation_text(const nlohmann::ordered_json& result, bool details);
/// One line a cell.
std::string validation_csv(const nlohmann::ordered_json& result);

}  // namespace ganymede
