#pragma once
// A study, `ganymede.study/1`: platforms x GPU counts x schemes x policies x seeds over one workload. It expands into
// plain scenarios.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace ganymede {

/// One run of a study. Runs that differ in their seed alone share a scenario.
struct StudyRun {
  std::string label;  ///< "aws us-east-1, 2 x V100, ring, seed 1"
  std::shared_ptr<const Scenario> base;
  std::uint64_t seed = 0;
  Scenario scenario() const { return with_seed(*base, seed); }
};

struct Study {
  std::string name;
  std::string about;
  /// Platform by platform, then count, scheme, policy, seed; one GPU has no scheme and stands once.
  std::vector<StudyRun> runs;
};

/// Reads a study and all the scenarios it stands for. Each platform entry names a GPU, whose counts go on the cheapest
/// instances that hold them, or an instance. ConfigError as for a scenario, with the run's label before the message.
Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// What a study came to.
struct StudyOutcome {
  std::string json;          ///< `ganymede.sweep/1`, the same bytes whatever the number of jobs
  std::string brief;         ///< the same for tables: of runs that differ in their seed alone, the first
  std::size_t failed = 0;    ///< runs that went wrong: a crash, a policy that failed
  std::size_t endless = 0;   ///< runs that would never finish
  std::string first_reason;  ///< of these
};

/// How the rows of a journal are checked.
struct JournalCheck {
  /// Throws for a result of which what is to be shown of it cannot be read.
  std::function<void(const nlohmann::json& run)> whole{};
  /// Is told of a row that is left out: where, and what is wrong with it.
  std::function<void(const std::string& what)> dropped{};
};

/// Simulates every run in child processes, `jobs` at once. A run that crashes, whose policy fails or that never
/// finishes is listed with its reason among the results; one whose input is wrong is a ConfigError that names it, after
/// the others have ended. `progress` is called with the number of runs done. With a `journal` every result is appended
/// to that file as it comes, and those that stand there already are taken from it; a row that is no whole result is
/// dropped, and its run simulated again.
StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress = {},
                       const std::filesystem::path& journal = {}, const JournalCheck& check = {});

}  // namespace ganymede
