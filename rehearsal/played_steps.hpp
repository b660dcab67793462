#pragma once
// Steps that all ranks really played: how long a step took, and what its ranks waited for.

#include <cstddef>
#include <vector>

#include "rehearsal/step_player.hpp"

namespace ganymede::rehearsal {

/// Seconds of a mean step, over steps and ranks; all but `step` sum to it.
struct StepParts {
  double step = 0, compute = 0, exposed = 0, straggler = 0, input_stall = 0;
};

// A step as numbers, which ranks send or share.
std::size_t numbers_of_step(std::size_t buckets);
void append_numbers(const PlayedStep& step, std::vector<double>& numbers);
PlayedStep step_of_numbers(const double* numbers, std::size_t buckets);

class PlayedSteps {
 public:
  /// `steps`: by step and rank, at least one. `wait_before`: for each bucket the phase that waits for it.
  PlayedSteps(std::vector<std::vector<PlayedStep>> steps, std::vector<std::size_t> wait_before);

  /// Time from the last rank's begin of a step to the last rank's end.
  std::vector<double> durations() const;
  StepParts parts() const;
  double median_late() const;

 private:
  void add_step(const std::vector<PlayedStep>& ranks, StepParts& out) const;

  std::vector<std::vector<PlayedStep>> steps_;
  std::vector<std::size_t> wait_before_;
};

}  // namespace ganymede::rehearsal
