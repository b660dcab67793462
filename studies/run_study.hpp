#pragma once
// Simulates the runs of a study on this machine, and writes what they gave.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "common/file.hpp"
#include "common/json_fwd.hpp"
#include "studies/study.hpp"
#include "studies/sweep_rows.hpp"

namespace ganymede::studies {

// The journal of a sweep: the results of the runs that are done, one in each line. With it, a sweep that was
// interrupted continues where it stopped.

/// Is called when a sweep goes on from a journal, and then with the place of each row that is left out and what is
/// wrong with it; may be empty.
using TellOfJournal = std::function<void(const std::string& what)>;

/// Returns the results in a journal by scenario hash; nothing if there is no such file. A line that is not a complete
/// result is left out and reported, except for a last line that was cut short.
std::map<std::string, FinishedRun> read_journal(const std::filesystem::path& journal, const TellOfJournal& tell);
/// Removes the journal when its sweep is done, unless a file of the user's has its name by now.
void remove_journal(const std::filesystem::path& journal);

/// The results of a study.
struct StudyOutcome {
  std::string json;          ///< `ganymede.sweep/1`; the same bytes for any number of jobs
  std::string brief;         ///< for tables: the same, with only the first of runs that differ only in their seed
  std::size_t failed = 0;    ///< number of runs that crashed or whose policy failed
  std::size_t endless = 0;   ///< number of runs that would never finish
  std::string first_reason;  ///< why the first of these runs has no result
};

/// Throws if none of `runs` runs has a result: Failure if one of them failed, Infeasible if none would ever finish.
void require_some_result(const StudyOutcome& outcome, std::size_t runs);
/// Throws Failure if one of `runs` runs failed.
void require_no_failure(const StudyOutcome& outcome, std::size_t runs);

/// Simulates every run in child processes, `jobs` at once. A run that crashes, whose policy fails or that would never
/// finish is listed with its reason among the results. If the input of a run is wrong, this throws a ConfigError that
/// names the run, after the other runs have ended. `progress` is called with the number of runs done. With a `journal`,
/// every result is appended to that file as it comes, and results that the file already has are taken from it. A row
/// that is not a complete result is dropped, and its run is simulated again.
StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress = {},
                       const std::filesystem::path& journal = {}, const TellOfJournal& tell = {});

}  // namespace ganymede::studies
