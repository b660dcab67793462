#pragma once
// Text and metrics of a `ganymede.forecast/1`: how a training under way compares with its plan.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/wrap.hpp"

namespace ganymede::report {

/// Some lines for a terminal, at most `width` columns wide.
std::string forecast_text(const nlohmann::ordered_json& forecast, std::size_t width = kAnyWidth);
/// The same as metrics of Prometheus in its text format, version 0.0.4.
std::string forecast_metrics(const nlohmann::ordered_json& forecast);

}  // namespace ganymede::report
