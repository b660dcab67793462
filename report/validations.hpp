#pragma once
// `ganymede.validation-result/1` for people.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/wrap.hpp"

namespace ganymede {

/// Each study: its assumptions (in full only if `details`), what was fitted, its cells, claims and promises; then the
/// summary over all. Fitted to `width` columns (report/table.hpp).
std::string validation_text(const nlohmann::ordered_json& result, bool details, std::size_t width = kAnyWidth);
/// One line a cell.
std::string validation_csv(const nlohmann::ordered_json& result);

}  // namespace ganymede
