#pragma once
// Rehearsals as text, from the JSON that `rehearse --format json` prints.

#include <string>

#include "common/json_fwd.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The parts of a mean step: measured, predicted, and how far off; then the noise of the measurement. It is fitted to
/// `width` columns.
std::string rehearsed_steps_text(const OrderedJson& result, std::size_t width = kAnyWidth);
/// The events of a life in both, its times and its bill, and the processes that played it.
std::string rehearsed_life_text(const OrderedJson& result, std::size_t width = kAnyWidth);

}  // namespace ganymede::report
