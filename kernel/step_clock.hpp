#pragma once
// Times the phases of steps. A phase ends where the next begins, so phases cover the step without gaps, at two clock
// readings for each. On a device with a clock of its own (see DeviceTimeline::has_clock) a phase's time is the
// device's, and host_s the part of it that the host took to call the phase's operations. Its events are nodes of the
// step's graph, 24 to 32 beside the 47 kernels of mlp-gan, so that only every eighth step records them, or each where
// steps differ (lazy regularisation). The other steps get the times of the last marked one, in proportion to their wall
// times.

#include <chrono>
#include <iterator>
#include <string_view>
#include <vector>

#include "kernel/gan.hpp"
#include "kernel/network.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

// The phases of a training step, which StepClock times and a step trace lists.

/// A phase that a training does not have is missing in its trace; phases_of() gives their order.
enum class Phase {
  load,
  copy,
  discriminator_forward_real,
  discriminator_backward_real,
  generator_forward,
  discriminator_forward_fake,
  discriminator_backward_fake,
  discriminator_gradient_penalty,
  discriminator_update,
  generator_forward_through_discriminator,
  generator_backward_through_discriminator,
  generator_backward,
  generator_path_length,
  generator_update,
  encoder_forward,  // from here on those of a variational step
  decoder_forward,
  decoder_backward,
  encoder_backward,
  decoder_update,
  encoder_update,
  cycle_b_forward,  // from here on those of a cyclic step, beside updates and the discriminators' phases
  cycle_b_judge,
  cycle_b_backward,
  cycle_a_forward,
  cycle_a_judge,
  cycle_a_backward,
};

/// The phases before this one form the discriminator's update, which a step may repeat.
inline constexpr Phase kFirstOfGenerator = Phase::generator_forward_through_discriminator;

struct PhaseInfo {
  std::string_view name;
  /// The network whose update the phase serves; empty: neither. generator.forward serves both, and counts here as the
  /// generator's.
  std::string_view network;
  /// Where the phase's work runs: "host" (the loader), "copy" (from host to device) or "compute".
  std::string_view stream;
};

/// In the order of Phase.
inline constexpr PhaseInfo kPhases[] = {
    {"load", "", "host"},
    {"copy", "", "copy"},
    {"discriminator.forward_real", "discriminator", "compute"},
    {"discriminator.backward_real", "discriminator", "compute"},
    {"generator.forward", "generator", "compute"},
    {"discriminator.forward_fake", "discriminator", "compute"},
    {"discriminator.backward_fake", "discriminator", "compute"},
    {"discriminator.gradient_penalty", "discriminator", "compute"},
    {"discriminator.update", "discriminator", "compute"},
    {"generator.forward_through_discriminator", "generator", "compute"},
    {"generator.backward_through_discriminator", "generator", "compute"},
    {"generator.backward", "generator", "compute"},
    {"generator.path_length", "generator", "compute"},
    {"generator.update", "generator", "compute"},
    {"encoder.forward", "encoder", "compute"},
    {"decoder.forward", "decoder", "compute"},
    {"decoder.backward", "decoder", "compute"},
    {"encoder.backward", "encoder", "compute"},
    {"decoder.update", "decoder", "compute"},
    {"encoder.update", "encoder", "compute"},
    {"cycle_b.forward", "generator", "compute"},
    {"cycle_b.judge", "generator", "compute"},
    {"cycle_b.backward", "generator", "compute"},
    {"cycle_a.forward", "generator", "compute"},
    {"cycle_a.judge", "generator", "compute"},
    {"cycle_a.backward", "generator", "compute"},
};
inline constexpr std::size_t kPhaseCount = std::size(kPhases);
/// The phases of a step of this kind, in order. With several discriminator updates those before kFirstOfGenerator
/// repeat.
std::vector<Phase> phases_of(StepKind kind, bool gradient_penalty, bool path_length = false);
/// Steps from one that has the phase, as a trace names it, to the next.
int interval_of(std::string_view phase, const LazySteps& lazy);

class StepClock {
 public:
  struct PhaseTimes {
    /// One element for each step: start after the step's begin, duration, time of the host.
    std::vector<double> start_s, seconds, host_s;
    Work work;  ///< work of the phase in the last step that had one
  };

  /// A clock that records nothing until record() is called.
  StepClock() = default;
  /// Records from the next step on. `generator_layers`, `discriminator_layers`: how many layers report their gradients;
  /// `discriminator_updates`: how many updates of the discriminator a step has. `alike`: all steps do the same; else
  /// each of them is marked. `ops` must outlive the clock.
  void record(TensorOps& ops, std::size_t generator_layers, std::size_t discriminator_layers, int discriminator_updates,
              bool alike = true);
  bool recording() const { return ops_ != nullptr; }
  /// Reserves memory for `steps` more steps, so that recording them allocates nothing.
  void reserve(std::size_t steps);

  void begin_step();
  /// On a device with a clock: the first step that is not done yet is done. Its wall time begins where that of the step
  /// before it ended, or with the step itself after a pause. A marked step must be done before the next one begins.
  void step_done();
  bool is_marked() const { return marked_; }  ///< whether the last step that has begun records events
  /// Begins an update of the discriminator, numbered from 0 in each step; its phases are recorded apart from those of
  /// other updates. The generator's phases belong to update 0.
  void begin_update(int update) { update_ = update; }
  /// Ends the running phase and begins `phase`.
  void begin_phase(Phase phase);
  /// Ends the running step, if there is one; what follows is not part of its wall time.
  void end_step();

  /// Must be called by the backward pass that completes a network's gradients, when those of `layer` are final.
  void generator_layer_done(std::size_t layer) { layer_done(generator_ready_, layer); }
  void discriminator_layer_done(std::size_t layer) { layer_done(discriminator_ready_, layer); }

  const std::vector<double>& wall_s() const { return wall_s_; }
  int discriminator_updates() const { return static_cast<int>(phases_.size() / kPhaseCount); }
  const PhaseTimes& times(Phase phase, int update = 0) const { return phases_[index(phase, update)]; }
  /// For each layer, summed over all steps and updates: seconds from the start of the phase until the layer's gradients
  /// were final.
  const std::vector<double>& generator_ready_s() const { return generator_ready_; }
  const std::vector<double>& discriminator_ready_s() const { return discriminator_ready_; }

 private:
  using Clock = std::chrono::steady_clock;

  static std::size_t index(Phase phase, int update) {
    return static_cast<std::size_t>(update) * kPhaseCount + static_cast<std::size_t>(phase);
  }
  void close_phase(Clock::time_point now);
  /// Ends the step's wall time, and takes the device's times of its phases.
  void close_step(Clock::time_point now);
  void take_device_times();
  /// Gives an unmarked step the times of the step before it, times `factor`; `step` is its number.
  void repeat_device_times(std::size_t step, double factor);
  void layer_done(std::vector<double>& ready, std::size_t layer);

  TensorOps* ops_ = nullptr;
  std::vector<PhaseTimes> phases_;  // see index()
  std::vector<double> wall_s_;
  std::vector<double> generator_ready_, discriminator_ready_;
  Clock::time_point step_begin_, phase_begin_, wall_begin_;
  std::size_t begun_ = 0;  ///< steps
  bool in_step_ = false, in_phase_ = false;
  Phase phase_{};
  int update_ = 0, update_of_phase_ = 0;
  Work work_at_begin_;

  // Events that were recorded on the device's timeline in this step.
  struct PhaseEvent {
    std::size_t event, phase;  ///< phase: see index()
  };
  struct ReadyEvent {
    std::vector<double>* ready;
    std::size_t layer, event, phase_event;
  };
  bool on_device_ = false, marked_ = false, alike_ = true;
  struct Ready {
    std::vector<double>* ready;
    std::size_t layer;
    double seconds;
  };
  std::vector<Ready> last_ready_;  // of the last step
  std::size_t events_ = 0;
  std::vector<PhaseEvent> phase_events_;
  std::vector<ReadyEvent> ready_events_;
};

// Turns what a StepClock recorded into the structures of a step trace.

/// Gradients are reduced in buckets of whole layers, from the last layer on. A bucket is closed before it would exceed
/// this size. PyTorch's DistributedDataParallel uses 25 MiB, which is too coarse for gradients of 8 MB.
inline constexpr double kBucketBytes = 4 * 1048576.0;

/// Divides a network's layers into buckets. `ready_s[i]` is the time from the start of phase `after` until layer i's
/// gradients were final, and `phase_s` the length of that phase, both summed over the same steps.
std::vector<traces::TraceBucket> make_buckets(const Network& network, const std::vector<double>& ready_s,
                                              double phase_s, Phase after);

/// The phases, buckets and wall times of what was recorded, without the first `warmup` steps.
traces::TraceBatch make_trace_batch(const Gan& gan, const StepClock& clock, std::size_t warmup);

}  // namespace ganymede::kernel
