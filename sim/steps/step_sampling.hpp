#pragma once
// How many steps of a configuration are simulated: until they repeat, until their mean is known well enough, or all.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "calibration/step_model.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_process.hpp"

namespace ganymede::sim {

/// Stalls of one worker: each of `extra_s` came once in `steps` steps.
struct RareStalls {
  std::vector<double> extra_s;  ///< Seconds that each stall lasted, ascending.
  double steps = 1;             ///< Steps of the trace.

  /// Mean and mean square, in s and s², of the longest stall among `workers` workers over `per` steps.
  struct Moments {
    double mean = 0, square = 0;
  };
  Moments longest(std::size_t workers, double per = 1) const;
  /// Draws for how many seconds one worker's next step stalls; mostly 0.
  double draw(RandomStream& random) const;
};

/// Takes rare stalls out of the model and returns them: steps that exceed the median step by more than 10 robust
/// standard deviations (from the median absolute deviation) and last more than 1.5 times as long as it, if they are at
/// most 2 % of the trace. Each is replaced by the step before it; the stall is the difference between the two times.
RareStalls take_rare_stalls(calibration::StepModel& model);

/// The longest tenth of a trace's steps as a generalised Pareto distribution, fitted by probability-weighted moments
/// (Hosking & Wallis, Technometrics 29, 1987). It stands for steps longer than any recorded one: the slowest of 1,024
/// workers lies beyond what a trace of some hundred steps has seen.
struct JitterTail {
  double threshold_s = 0;
  double shape = 0, scale = 0;
  std::size_t base_row = 0;                   ///< The trace's step at the threshold.
  std::vector<bool> is_beyond;                ///< Whether each row is longer than the threshold.
  double beyond(RandomStream& random) const;  ///< Draws seconds above the threshold.
};

/// Fits the tail of the model's steps. Precondition: at least 50 samples.
JitterTail fit_tail(const calibration::StepModel& model);

/// Block bootstrap of a trace. All workers draw the same block of consecutive steps, so that they share slow drift;
/// inside the block each starts at a place of its own, so that they do not share fast jitter. Rows follow each other as
/// recorded, and after the block's end comes its start, which keeps their correlation. For example, with a block of
/// rows 40 to 64 one worker repeats 43, 44, …, 64, 40, 41, 42 and another 60, …, 64, 40, …, 59.
class StepSampler {
 public:
  /// Preconditions: samples, workers and block_length above zero.
  StepSampler(std::size_t samples, std::size_t workers, std::size_t block_length, std::uint64_t seed);

  /// Draws steps beyond the tail's threshold from the tail; needed with more workers than a block has steps.
  void use_tail(JitterTail tail);
  /// Lets each worker's steps stall.
  void use_stalls(RareStalls stalls) { stalls_ = std::move(stalls); }

  std::size_t block_length() const { return block_length_; }
  /// The rows of the next step, one for each worker; valid until the next call.
  std::span<const std::size_t> next();
  /// Seconds that each worker's step takes beyond its row; empty: none.
  std::span<const double> extra_s() const { return extra_s_; }

 private:
  std::size_t samples_;
  std::size_t block_length_;
  std::size_t place_;                // in the block
  std::size_t first_ = 0;            // row of the block
  std::vector<std::size_t> offset_;  // by worker
  std::vector<std::size_t> rows_;
  std::vector<double> extra_s_;
  std::optional<JitterTail> tail_;
  RareStalls stalls_;
  RandomStream random_, tail_random_, stall_random_;
};

/// Sums over simulated steps, by pool, and the mean step that follows from them.
class StepSums {
 public:
  /// `pool_of`: the pool of each worker. `slowest`: for each pool, the work time of the slowest worker divided by that
  /// of the mean worker; steps are simulated as if all workers took the slowest one's time.
  StepSums(std::vector<std::size_t> pool_of, std::vector<double> slowest);

  /// Adds a step, counted `times` times.
  void add(const StepOutcome& step, double times = 1);
  /// Sets `mean` and `pools` of a distribution from the sums over `steps` steps. The time by which the slowest worker
  /// computes longer than the mean one counts as waiting for stragglers.
  void write_mean_step(double steps, StepDistribution& out) const;

 private:
  std::vector<std::size_t> pool_of_;
  std::vector<double> slowest_;
  Seconds total_;
  std::vector<PoolStep> pools_;
};

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
