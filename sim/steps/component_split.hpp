#pragma once
// Generator and discriminator on different GPUs: fake images cross in one direction, their gradients in the other.

#include <vector>

#include "calibration/step_model.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {

/// Pairs of workers: 2p holds the discriminator of pair p, 2p + 1 its generator. Phases run in the order of the step,
/// each on the GPU of the network whose layers it walks; between two phases on different GPUs a batch of images or of
/// their gradients crosses, which takes `crossing`. A network's gradients are reduced over the pairs when its backward
/// pass has ended, and its update waits for them; `reduce_s` is the time of each bucket from the last arrival on (0 for
/// one pair). A pair trains one batch per step and repeats one recorded step, the row of its first worker. With an odd
/// number of workers the last one has no partner and waits.
class ComponentSplit : public StepProcess {
 public:
  ComponentSplit(std::vector<const calibration::StepModel*> models, int prefetch_depth, Seconds crossing,
                 std::vector<Seconds> reduce_s);
  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;

 private:
  Seconds next_batch(std::size_t pair, std::size_t row);
  void run_phase(std::size_t index, std::span<const std::size_t> rows, std::span<const double> extra_s,
                 StepOutcome& step);
  Seconds reduce_before(std::size_t phase, Seconds earliest) const;

  std::vector<const calibration::StepModel*> models_;  // by worker
  Seconds crossing_;
  std::vector<Seconds> reduce_s_;                         // by bucket
  std::vector<bool> on_generator_;                        // by phase
  std::vector<std::size_t> wait_before_;                  // by bucket
  std::vector<std::vector<Seconds>> stage_free_, taken_;  // of the input pipelines, by pair
  std::size_t steps_ = 0;
  Seconds now_;

  // State of the step under way.
  std::vector<Seconds> chain_;      // by pair: end of the last phase that has run
  std::vector<bool> at_generator_;  // by pair: its images or gradients are on the generator's GPU
  std::vector<Seconds> ready_;      // by bucket: when it is ready in all pairs
};

}  // namespace ganymede::sim
