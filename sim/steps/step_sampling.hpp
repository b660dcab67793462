#pragma once
// How many steps of a configuration are simulated: until they repeat, until their mean is known well enough, or all.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/steps/rare_stalls.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/step_sums.hpp"

namespace ganymede::sim {

/// How the steps of a distribution are sampled.
struct SamplingOptions {
  std::size_t workers = 1;
  std::size_t samples = 1;           ///< Recorded steps that the workers draw from.
  std::int64_t run_steps = 1;        ///< Steps of the run.
  bool every_step = false;           ///< Simulates each step of the run, not a sample: message fidelity.
  double precision = 0.005;          ///< Relative half-width of the mean's 95 % interval at which a sample is enough.
  double simulated_messages = 0;     ///< Number of messages of a step that must be simulated.
  int shown_steps = 0;               ///< Steps whose spans are kept.
  std::uint64_t seed = 0;            ///< Seed for drawing recorded steps.
  std::optional<JitterTail> tail{};  ///< Steps beyond its threshold are drawn from it.
  RareStalls stalls{};               ///< Drawn with `every_step` only.
};

/// Without jitter: simulates steps until they repeat, and counts the other steps of the run as repetitions of the last
/// two. With `in_rounds`, for modes whose steps come in rounds or settle in a queue, simulates a fixed number of rounds
/// to settle and as many more to count.
void repeat_steps(StepProcess& process, const SamplingOptions& options, bool in_rounds, StepSums& sums,
                  StepDistribution& out);

/// With jitter: simulates blocks of drawn steps until the mean is as precise as asked for, or until more steps would
/// cost too much; with `every_step`, each step of the run.
void sample_steps(StepProcess& process, const SamplingOptions& options, StepSums& sums, StepDistribution& out);

/// Simulates `shown_steps` further steps that repeat the first recorded one, only for their spans; they do not enter
/// the sums.
void show_steps(StepProcess& process, const SamplingOptions& options, StepDistribution& out);

}  // namespace ganymede::sim
