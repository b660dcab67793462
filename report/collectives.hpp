#pragma once
// Timed collectives, simulated or executed, as text and as CSV, from the JSON that `allreduce --format json` prints.

#include <string>

#include "common/json_fwd.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// Returns a table of size, scheme, time, algbw and busbw as in nccl-tests, and what limits each time; then a ranking
/// for each size. It is fitted to `width` columns (table.hpp).
std::string collectives_text(const Json& rows, std::size_t width = kAnyWidth);
/// Returns CSV with one line for each of these rows.
std::string collectives_csv(const Json& rows);

/// Collectives that were executed, from what rehearsal::real_allreduce() returns: a heading, `machine` (which names the
/// machine that is predicted for), and a table of measured and predicted times.
std::string real_collectives_text(const OrderedJson& result, const std::string& machine, std::size_t width = kAnyWidth);
/// Returns CSV with one line for each of the result's "rows".
std::string real_collectives_csv(const OrderedJson& rows);

}  // namespace ganymede::report
