#pragma once
// Times the phases of steps. A phase ends where the next begins, so that phases tile the step; two clock readings a
// phase. Where the device works beside the host, a phase's time is the device's, and host_s is how long the host took
// to ask for it.

#include <chrono>
#include <vector>

#include "kernel/network.hpp"
#include "kernel/phase.hpp"

namespace ganymede::kernel {

class StepClock {
 public:
  struct PhaseTimes {
    std::vector<double> start_s, seconds, host_s;  ///< one a step
    Work work;                                     ///< of the last step
  };

  /// Records nothing until `record`.
  StepClock() = default;
  /// Records from now on. `generator_layers`, `discriminator_layers`: how many layers report their gradients;
  /// `discriminator_updates`: of a step.
  void record(Ops& ops, std::size_t generator_layers, std::size_t discriminator_layers, int discriminator_updates);
  bool recording() const { return ops_ != nullptr; }
  /// Room for so many more steps, so that recording them allocates nothing.
  void reserve(std::size_t steps);

  void begin_step();
  /// Of the discriminator, from 0; its phases count by themselves. The generator's belong to 0.
  void begin_update(int update) { update_ = update; }
  void enter(Phase phase);
  /// The running step ends here; its wall time goes to here.
  void end_step();

  /// Called by the backward pass that completes a network's gradients: those of layer `layer` are final.
  void generator_layer_done(std::size_t layer) { layer_done(generator_ready_, layer); }
  void discriminator_layer_done(std::size_t layer) { layer_done(discriminator_ready_, layer); }

  const std::vector<double>& wall_s() const { return wall_s_; }
  int discriminator_updates() const { return static_cast<int>(phases_.size() / kPhaseCount); }
  const PhaseTimes& times(Phase phase, int update = 0) const { return phases_[index(phase, update)]; }
  /// By layer, summed over all steps and updates: the time from the start of the phase until the layer's gradients were
  /// final.
  const std::vector<double>& generator_ready_s() const { return generator_ready_; }
  const std::vector<double>& discriminator_ready_s() const { return discriminator_ready_; }

 private:
  using Clock = std::chrono::steady_clock;

  static std::size_t index(Phase phase, int update) {
    return static_cast<std::size_t>(update) * kPhaseCount + static_cast<std::size_t>(phase);
  }
  void close_phase(Clock::time_point now);
  /// What the device's clock says of the step that is over.
  void take_device_times();
  void layer_done(std::vector<double>& ready, std::size_t layer);

  Ops* ops_ = nullptr;
  std::vector<PhaseTimes> phases_;  // of the first update, then of the second
  std::vector<double> wall_s_;
  std::vector<double> generator_ready_, discriminator_ready_;
  Clock::time_point step_begin_, phase_begin_;
  bool in_step_ = false, in_phase_ = false;
  Phase phase_{};
  int update_ = 0, update_of_phase_ = 0;
  Work work_at_begin_;

  // Readings of the device's clock in this step.
  struct Mark {
    std::size_t mark, phase;  ///< phase: by index()
  };
  struct ReadyMark {
    std::vector<double>* ready;
    std::size_t layer, mark, phase_mark;
  };
  bool on_device_ = false;
  std::size_t marks_ = 0;
  std::vector<Mark> phase_marks_;
  std::vector<ReadyMark> ready_marks_;
};

}  // namespace ganymede::kernel
