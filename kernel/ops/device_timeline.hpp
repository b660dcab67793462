#pragma once
// When a device's operations run: steps that may be captured and replayed, the device's clock, waiting for it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace ganymede::kernel {

/// Steps that may have ended before the results of the first of them are taken, and floats of a step's results.
inline constexpr std::size_t kStepsAhead = 2, kStepResults = 12;

/// The queue of one device. Operations run in the order in which they were called; a GPU's run later than the call.
class DeviceTimeline {
 public:
  DeviceTimeline() = default;
  DeviceTimeline(const DeviceTimeline&) = delete;
  DeviceTimeline& operator=(const DeviceTimeline&) = delete;
  virtual ~DeviceTimeline() = default;

  /// Waits until every operation called so far is done.
  virtual void synchronize() = 0;

  /// A step lasts from here to the next TensorOps::end_step or read. Each step must make the same calls on the same
  /// memory as the one before it, so that a backend may capture one (as a CUDA graph) and replay it. Steps that record
  /// events are captured apart from the others.
  virtual void begin_step() = 0;
  /// Whether the next step records events. Must be called between steps.
  void set_marked(bool marked) { marked_ = marked; }
  /// Whether the next step makes other calls than most; such a step is neither captured nor replayed. Must be called
  /// between steps.
  void set_unusual(bool unusual) { unusual_ = unusual; }
  /// Discards the captured step and the prefetched images; the next step is captured anew. Must be called between
  /// steps, when the next step will differ: another batch size, other memory, another place in the data.
  virtual void discard_step() = 0;
  /// Starts to copy a later step's images to the device. `host_pixels` is what TensorOps::load_images will be given
  /// next after the current step; it must stay unchanged until then.
  virtual void prefetch_images(std::span<const std::uint8_t> host_pixels) = 0;
  /// `call` runs on the host after a step has ended, as soon as the step before it is done; there it can prefetch
  /// images.
  void set_while_waiting(std::function<void()> call) { while_waiting_ = std::move(call); }

  /// True for devices that run asynchronously and provide timestamps (GPUs). The next two need it.
  virtual bool has_clock() const = 0;
  /// Records event i of the running step, which must be marked: its time is when all operations called before are
  /// done. A step's events must be numbered 0, 1, 2, ...
  virtual void record_event(std::size_t i) = 0;
  /// Seconds from event 0 to event i of the last marked step; i = number of events: to the end of the step. Valid when
  /// the step's results were taken, until the next marked step begins.
  virtual double elapsed_s(std::size_t i) const = 0;

 protected:
  void run_while_waiting() const {
    if (while_waiting_) while_waiting_();
  }
  bool marked() const { return marked_; }
  bool unusual() const { return unusual_; }

 private:
  std::function<void()> while_waiting_;
  bool marked_ = false, unusual_ = false;
};

/// The timeline of a device whose operations are done when their call returns: the CPU.
class HostTimeline final : public DeviceTimeline {
 public:
  void synchronize() override {}
  void begin_step() override {}
  void discard_step() override {}
  void prefetch_images(std::span<const std::uint8_t> /*host_pixels*/) override {}
  bool has_clock() const override { return false; }
  void record_event(std::size_t /*i*/) override {}
  double elapsed_s(std::size_t /*i*/) const override { return 0; }
};

}  // namespace ganymede::kernel
