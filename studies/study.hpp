#pragma once
// A study, `ganymede.study/1`: one workload on all combinations of platforms, GPU counts, all-reduce schemes, policies
// and seeds. It expands into plain scenarios.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace ganymede::studies {

/// One run of a study. Runs that differ only in their seed share a scenario.
struct StudyRun {
  std::string label;  ///< "aws us-east-1, 2 x V100, ring, seed 1"
  std::shared_ptr<const sim::Scenario> base;
  std::uint64_t seed = 0;  ///< replaces that of `base`
  sim::Scenario scenario() const { return sim::with_seed(*base, seed); }
};

struct Study {
  std::string name;
  std::string about;
  /// Ordered by platform, then GPU count, scheme, policy and seed. One GPU needs no scheme and appears once.
  std::vector<StudyRun> runs;
};

/// Reads a study and expands it into scenarios. An entry of "platforms" names an instance, or a GPU; then each GPU
/// count goes on the cheapest instances that hold it. Throws ConfigError as load_scenario() does, with the label of the
/// run in the message.
Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// The results of a study.
struct StudyOutcome {
  std::string json;          ///< `ganymede.sweep/1`; the same bytes for any number of jobs
  std::string brief;         ///< for tables: the same, with only the first of runs that differ only in their seed
  std::size_t failed = 0;    ///< number of runs that crashed or whose policy failed
  std::size_t endless = 0;   ///< number of runs that would never finish
  std::string first_reason;  ///< why the first of these runs has no result
};

/// How the rows of a journal are checked. Both functions may be empty.
struct JournalCheck {
  /// Throws if a result lacks something that is to be shown.
  std::function<void(const nlohmann::json& run)> check_row{};
  /// Is called with the place of a row that is left out and what is wrong with it.
  std::function<void(const std::string& what)> report_dropped{};
};

/// Simulates every run in child processes, `jobs` at once. A run that crashes, whose policy fails or that would never
/// finish is listed with its reason among the results. If the input of a run is wrong, this throws a ConfigError that
/// names the run, after the other runs have ended. `progress` is called with the number of runs done. With a `journal`,
/// every result is appended to that file as it comes, and results that the file already has are taken from it. A row
/// that is not a complete result is dropped, and its run is simulated again.
StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress = {},
                       const std::filesystem::path& journal = {}, const JournalCheck& check = {});

}  // namespace ganymede::studies
