#pragma once
// Timed collectives as text and as CSV, from the JSON that `allreduce --format json` prints.

#include <string>

#include "common/json_fwd.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {

/// Returns a table of size, scheme, time, algbw and busbw as in nccl-tests, and what limits each time; then a ranking
/// for each size. It is fitted to `width` columns (table.hpp).
std::string collectives_text(const Json& rows, std::size_t width = kAnyWidth);
/// Returns CSV with one line for each of these rows.
std::string collectives_csv(const Json& rows);

}  // namespace ganymede::report
