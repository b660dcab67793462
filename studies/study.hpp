#pragma once
// A study, `ganymede.study/1`: platforms x GPU counts x schemes x seeds over one workload. It expands into plain
// scenarios.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/run/scenario.hpp"

namespace ganymede {

/// One run of a study.
struct StudyRun {
  std::string label;  ///< "aws us-east-1, 2 x V100, ring, seed 1"
  Scenario scenario;
};

struct Study {
  std::string name;
  std::string about;
  std::vector<StudyRun>
      runs;  ///< platform by platform, then count, scheme, seed; one GPU has no scheme and stands once
};

/// Reads a study and all the scenarios it stands for. Each platform entry names a GPU, whose counts go on the cheapest
/// instances that hold them, or an instance. ConfigError as for a scenario, with the run's label before the message.
Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// Simulates every run, `jobs` child processes at once: the text of `ganymede.sweep/1`, the same bytes whatever `jobs`.
/// A run that fails is named in the exception, after the others have ended. `progress` is called with the number of
/// runs done.
std::string run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede
