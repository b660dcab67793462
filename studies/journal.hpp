#pragma once
// The journal of a sweep: the results of the runs that are done, one in each line. With it, a sweep that was
// interrupted continues where it stopped.

#include <filesystem>
#include <map>
#include <string>

#include "studies/run_study.hpp"
#include "studies/sweep_rows.hpp"

namespace ganymede::studies {

/// Returns the results in a journal by scenario hash; nothing if there is no such file. A line that is not a complete
/// result is left out and reported, except for a last line that was cut short.
std::map<std::string, FinishedRun> read_journal(const std::filesystem::path& journal,
                                                const ReportDropped& report_dropped);

}  // namespace ganymede::studies
