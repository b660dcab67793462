#pragma once
// One rank's steps in real time: phases are slept through or computed, and buckets are reduced for real meanwhile.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/execution.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/step_plan.hpp"

namespace ganymede::rehearsal {

/// Small products of matrices. How long one takes on a processor that does nothing else is measured once; a phase is
/// then a number of them, so that whatever takes the processor or its memory away makes the phase longer.
class BusyWork {
 public:
  BusyWork();

  double unit_s() const { return unit_s_; }  ///< of one product
  void compute_unit();

 private:
  std::vector<float> a_, b_, c_;
  double unit_s_ = 0;
};

/// One step as a rank played it; times are those of Group::now().
struct PlayedStep {
  double begin = 0, end = 0;
  double input_stall = 0;
  /// The rank reached a moment of its plan so much later than planned, at worst: the processor was not given in time.
  double late = 0;
  std::vector<double> issued = {};  ///< by bucket
  /// By bucket: the wait for all buckets that the same phase needs.
  std::vector<double> wait_begin = {}, wait_end = {};
};

class StepPlayer {
 public:
  /// The first step begins at `begin`. `plan` and `group` must outlive the player.
  StepPlayer(const StepPlan& plan, Group& group, double begin);

  /// From now on phases are computed, and take as long as that takes. `work` must outlive the player.
  void compute_with(BusyWork& work) { work_ = &work; }
  /// The next step begins at `begin`.
  void start_at(double begin) { clock_ = begin; }
  /// From the next phase on, this rank's phases take `factor` times as long as planned.
  void slow_down(double factor) { slow_factor_ = factor; }
  /// Repeats the recorded step `row`.
  PlayedStep play(std::size_t row);
  /// The same with numbers whose sums are known; returns the first that is wrong on this rank.
  std::string check(std::size_t row);
  /// For each bucket the phase that waits for it.
  const std::vector<std::size_t>& waiting_phases() const { return wait_before_; }

 private:
  struct Bucket {
    RankPlan plan;
    std::vector<float> gradients;
    bool is_pending = false;  ///< issued in this step and not yet reduced
    double reduced = 0;       ///< when it was
  };

  void run_phase(std::size_t phase, std::size_t row, PlayedStep& step);
  void wait_for_reductions(std::size_t phase, PlayedStep& step);
  void issue(std::size_t bucket, PlayedStep& step);
  bool progress();
  std::string reduction() const;  ///< the one under way, and what it waits for; for messages to people
  void communicate_until(double time, PlayedStep& step);
  void compute_for(double seconds);

  const StepPlan& plan_;
  Group& group_;
  std::vector<std::size_t> wait_before_;
  std::vector<Bucket> buckets_;
  std::deque<std::size_t> issued_;  // in order; the first one is under way
  std::optional<Execution> running_;
  std::vector<std::size_t> held_back_;  // without overlap: ready, and not yet issued
  sim::InputPipeline input_;
  double slow_factor_ = 1;
  std::int64_t step_ = 0;     // counted from 1, with those that check the sums
  BusyWork* work_ = nullptr;  // null: phases are slept through
  double clock_;              // the moment of the plan that the rank has come to
};

// Steps that all ranks really played: how long a step took, and what its ranks waited for.

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
