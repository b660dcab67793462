#pragma once
// A study, `ganymede.study/1`: one workload on all combinations of platforms, GPU counts, all-reduce schemes, policies
// and seeds. It expands into plain scenarios.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace ganymede::studies {

/// One run of a study. Runs that differ only in their seed share a scenario.
struct StudyRun {
  std::shared_ptr<const std::string> part;  ///< "aws us-east-1, 2 x V100, ring"
  std::shared_ptr<const sim::Scenario> base;
  std::uint64_t seed = 0;  ///< replaces that of `base`
  sim::Scenario scenario() const { return sim::with_seed(*base, seed); }
  std::string label() const;  ///< "aws us-east-1, 2 x V100, ring, seed 1"
};

struct Study {
  std::string name;
  std::string about;
  /// Ordered by platform, then GPU count, scheme, policy and seed. One GPU needs no scheme and appears once.
  std::vector<StudyRun> runs;
  std::vector<std::uint64_t> seeds;
};

/// Reads a study and expands it into scenarios. An entry of "platforms" names an instance, or a GPU; then each GPU
/// count goes on the cheapest instances that hold it. Throws ConfigError as load_scenario() does, with the label of the
/// run in the message.
Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

}  // namespace ganymede::studies
