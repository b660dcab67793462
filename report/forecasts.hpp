#pragma once
// Text and metrics of a `ganymede.forecast/1`: how a training under way compares with its plan.

#include <cstddef>
#include <string>

#include "common/json_fwd.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {

/// Some lines for a terminal, at most `width` columns wide.
std::string forecast_text(const OrderedJson& forecast, std::size_t width = kAnyWidth);
/// The same as metrics of Prometheus in its text format, version 0.0.4.
std::string forecast_metrics(const OrderedJson& forecast);

}  // namespace ganymede::report
