#pragma once
// The timeline of a GPU: every kernel, product and copy passes through it, so that it can capture a step and replay it.
//
// The device is a template parameter, so that the same operations run on a GPU (gpu_device.hpp) and, in tests, on the
// CPU (tests/kernel/host_device.hpp). A Device runs its calls in order. It has:
//   each(count, body)                         calls body(i) for every i below count
//   columns<N>(rows, columns, term, finish, apply)
//                                             sums term(row, column), a Sums<N>, over the rows; calls finish(column,
//                                             sums) for each column, then apply(row, column) for each element
//   rows<N>(rows, length, term, apply)        sums term(row, i), a Sums<N>, over i; calls apply(row, i, sums) for each
//                                             element
//   gemm(Gemm), convolve(ConvolutionCall, workspace)
//   allocate, allocate_host, to_host, to_device, stage
//                                             memory, and copies between host and device
//   begin_capture, end_capture(which), discard_capture, replay(which)
//                                             of a step; which of two it is, 0 or 1
//   mark_end(slot), await_end(slot)           waits for what was called before the mark; slots are 0 and 1
//   mark, mark_s                              timestamps
//   launched()                                kernels launched since construction; a call of a library counts as one
//   join, reduce, gather, finish_reductions, leave
//                                             averages of gradients and other exchanges between replicas

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/device_timeline.hpp"

namespace ganymede::kernel::cuda {

template <class Device>
class Timeline final : public DeviceTimeline {
 public:
  /// `graph`: captures a step and replays it.
  Timeline(std::shared_ptr<Device> device, bool graph)
      : device_(std::move(device)),
        graph_(graph),
        scratch_(device_->allocate(kScratchFloats * sizeof(float))),
        host_results_(device_->allocate_host(kStepsAhead * kStepResults * sizeof(float))),
        slot_of_next_(device_->allocate(sizeof(std::uint32_t))) {
    if (!graph) return;
    device_words_ = device_->allocate(kMaxStepWords * sizeof(std::uint32_t));
    host_words_ = device_->allocate_host(kStepsAhead * kSlotWords * sizeof(std::uint32_t));
    words_.reserve(kMaxStepWords);
  }

  Device& device() const { return *device_; }

  void synchronize() override { device_->synchronize(); }
  /// From now on no step is captured. Must be called between steps.
  void run_call_by_call() {
    discard_step();
    graph_ = false;
  }

  // The first step runs call by call, so that libraries load and choose their algorithms. The second is captured. From
  // then on a step's calls only collect its StepWords, and the captured step is replayed when it ends. Unusual steps
  // (see set_unusual) run call by call. Nothing is copied between two steps: the first kernel of a captured step
  // fetches its words from memory of the host, the last one writes its results there. Each has two slots, so that the
  // host may be one step ahead.
  void begin_step() override {
    in_step_ = true;
    events_ = 0;
    if (!graph_) return;
    assert(mode_ == Mode::eager);
    words_.clear();
    launches_ = 0;
    if (!warm_ || unusual()) return;
    captured_ = &steps_[marked() ? 1 : 0];
    mode_ = captured_->launches > 0 ? Mode::replay : Mode::capture;
    if (mode_ == Mode::capture) {
      captured_->launched_at.clear();
      device_->begin_capture();
    }
    slot_ = step_word(static_cast<std::uint32_t>(ended_ % kStepsAhead));
    fetch_words();
  }
  void discard_step() override {
    assert(mode_ == Mode::eager);
    device_->discard_capture();
    warm_ = false;
    steps_ = {};
    prefetched_.host_pixels = nullptr;
  }
  void prefetch_images(std::span<const std::uint8_t> host_pixels) override {
    prefetched_ = {host_pixels.data(), device_->stage(host_pixels.data(), host_pixels.size())};
  }

  bool has_clock() const override { return true; }
  void record_event(std::size_t i) override {
    events_ = i + 1;
    if (launch()) device_->mark(i);
  }
  double elapsed_s(std::size_t i) const override { return device_->mark_s(i); }

  // ---- For the operations ----

  /// Counts a call. False while a step is replayed: then the call must not reach the device.
  bool launch() {
    if (mode_ == Mode::capture) captured_->launched_at.push_back(device_->launched());
    ++launches_;
    return mode_ != Mode::replay;
  }
  /// Number of kernels that the calls so far have launched. Its differences within a step count; in a replayed step
  /// they are those of the captured one.
  std::int64_t launched() const {
    if (mode_ != Mode::replay) return device_->launched();
    return captured_->launched_at[std::min(launches_, captured_->launched_at.size() - 1)];
  }
  template <class Body>
  void each(std::size_t count, const Body& body) {
    if (launch()) device_->each(count, body);
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int rows, int columns, const Term& term, const Finish& finish, const Apply& apply) {
    if (launch()) device_->template columns<N>(rows, columns, term, finish, apply);
  }
  template <int N, class Term, class Apply>
  void rows(int rows, int length, const Term& term, const Apply& apply) {
    if (launch()) device_->template rows<N>(rows, length, term, apply);
  }
  void gemm(const Gemm& call) {
    if (launch()) device_->gemm(call);
  }
  void convolve(const ConvolutionCall& call, const Buffer& workspace) {
    if (launch()) device_->convolve(call, workspace);
  }

  /// Gives all replicas the `bytes` of each, in the order of their ranks. Valid after finish_reductions().
  void gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t bytes) {
    if (launch()) device_->gather(mine, all, bytes);
  }
  void finish_reductions() {
    if (launch()) device_->finish_reductions();
  }

  /// See TensorOps.
  void end_step(const float* results, std::size_t count) {
    assert(count <= kStepResults && ended_ - taken_ < kStepsAhead);
    float* host = host_results_.floats();
    auto* next = static_cast<std::uint32_t*>(slot_of_next_.memory.get());
    const StepWord slot = mode_ == Mode::eager ? step_word(static_cast<std::uint32_t>(ended_ % kStepsAhead)) : slot_;
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) {
      host[slot.word() * kStepResults + i] = results[i];
      if (i == 0) *next = (slot.word() + 1) % kStepsAhead;
    });
    launch_step();
    device_->mark_end(ended_++ % kStepsAhead);
    is_host_free_ = true;
    work_on_host();
  }
  void take(std::span<float> results) {
    assert(taken_ < ended_ && results.size() <= kStepResults);
    const std::size_t slot = taken_++ % kStepsAhead;
    device_->await_end(slot);
    std::copy_n(host_results_.floats() + slot * kStepResults, results.size(), results.begin());
    work_on_host();
  }
  /// Ends the running step, if there is one, without results.
  void finish_step() {
    if (!in_step_) return;
    launch_step();
    run_while_waiting();
  }
  /// True if calls reach the device at once, so that host memory may be copied to it.
  bool is_eager() const { return mode_ == Mode::eager; }

  /// A number that may differ from step to step.
  StepWord step_word(std::uint32_t word) {
    if (mode_ == Mode::eager) return {nullptr, word};
    assert(words_.size() < kMaxStepWords);
    words_.push_back(word);
    return {static_cast<const std::uint32_t*>(device_words_.memory.get()) + words_.size() - 1, 0};
  }
  StepWord step_word(float number) { return step_word(bits_of(number)); }
  /// The key of one draw. Takes one number of `random` whatever the size of the draw, so that all processes draw alike.
  PhiloxKey draw_key(RandomStream& random) {
    const std::uint64_t bits = random.next();
    const StepWord low = step_word(static_cast<std::uint32_t>(bits));
    return {low, step_word(static_cast<std::uint32_t>(bits >> 32))};
  }

  /// The images in device memory; copies them unless they were prefetched.
  StagedImages staged(std::span<const std::uint8_t> host_pixels) {
    if (prefetched_.host_pixels != host_pixels.data()) prefetch_images(host_pixels);
    prefetched_.host_pixels = nullptr;
    return prefetched_.images;
  }

  /// Copies the running step's words from the host's memory, as the first kernel of a captured step. Public, because
  /// nvcc wants that of functions with kernels.
  void fetch_words() {
    const auto* host = static_cast<const std::uint32_t*>(host_words_.memory.get());
    const auto* next = static_cast<const std::uint32_t*>(slot_of_next_.memory.get());
    auto* to = static_cast<std::uint32_t*>(device_words_.memory.get());
    each(kFetchers, [=] GANYMEDE_DEVICE(std::size_t thread) {
      // Volatile, because the host writes them.
      const volatile std::uint32_t* from = host + *next * kSlotWords;
      const std::uint32_t count = from[0];
      for (std::size_t i = thread; i < count; i += kFetchers) to[i] = from[1 + i];
    });
  }

  /// Scratch memory for the intermediate results of one operation; the next operation overwrites it.
  float* scratch([[maybe_unused]] std::size_t floats) {
    assert(floats <= kScratchFloats);
    return scratch_.floats();
  }

 private:
  enum class Mode { eager, capture, replay };
  /// A captured step.
  struct Captured {
    std::size_t launches = 0, words = 0;    ///< no launches: it is not captured yet
    std::vector<std::int64_t> launched_at;  ///< device_->launched() before each call, and at the end
  };
  /// Completes the running step's capture and replays it, or replays the captured step. Throws Failure if a replayed
  /// step made other calls than the captured one.
  void launch_step() {
    in_step_ = false;
    if (events_ > 0) record_event(events_);
    warm_ = true;
    const Mode mode = std::exchange(mode_, Mode::eager);
    if (mode == Mode::capture) {
      captured_->launched_at.push_back(device_->launched());
      device_->end_capture(which());
      captured_->launches = launches_;
      captured_->words = words_.size();
    }
    if (mode != Mode::eager) {
      // The captured step is fixed, so this one must have made the same calls.
      if (launches_ != captured_->launches || words_.size() != captured_->words)
        throw Failure("the step has changed since it was captured; --no-graph runs it call by call");
      auto* host = static_cast<std::uint32_t*>(host_words_.memory.get()) + ended_ % kStepsAhead * kSlotWords;
      host[0] = static_cast<std::uint32_t>(words_.size());
      std::copy(words_.begin(), words_.end(), host + 1);
      device_->replay(which());
    }
  }
  /// The host's other work uses memory of the step before the last one, which must be done.
  void work_on_host() {
    if (ended_ - taken_ < kStepsAhead && std::exchange(is_host_free_, false)) run_while_waiting();
  }
  int which() const { return static_cast<int>(captured_ - steps_.data()); }
  static constexpr std::size_t kScratchFloats = std::size_t{1} << 20;
  static constexpr std::size_t kSlotWords = kMaxStepWords + 1;  ///< a step's words, after their number
  static constexpr std::size_t kFetchers = 256;                 ///< threads that fetch them

  std::shared_ptr<Device> device_;
  bool graph_;
  Buffer scratch_;
  Buffer host_results_, host_words_;  ///< freed after the device's memory, which waits for a running step
  Buffer slot_of_next_;               ///< on the device: the slot of the step that begins next
  Buffer device_words_;
  StepWord slot_ = {};                 ///< of the running step, if it is captured
  std::size_t ended_ = 0, taken_ = 0;  ///< steps that ended with results, and those whose results were taken
  bool is_host_free_ = false;          ///< run_while_waiting() is still due for the last step
  Mode mode_ = Mode::eager;
  std::vector<std::uint32_t> words_;  ///< the StepWords of the running step
  bool in_step_ = false;
  bool warm_ = false;  ///< a step has run call by call
  std::size_t launches_ = 0, events_ = 0;
  std::array<Captured, 2> steps_;       ///< without events, and with them
  Captured* captured_ = steps_.data();  ///< the one of the running step
  struct {
    const std::uint8_t* host_pixels = nullptr;  ///< null: nothing was prefetched
    StagedImages images = {};
  } prefetched_;
};

/// to [columns] = sums over the rows of from [rows x columns], added to the present values if `accumulate`.
template <class E, class Device>
void sum_columns(Timeline<Device>& timeline, float* to, const E* from, int rows, int columns, bool accumulate) {
  const std::size_t width = size_of(columns);
  timeline.template columns<1>(
      rows, columns, [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) { return Sums<1>{{from[row * width + c]}}; },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) { to[c] = (accumulate ? to[c] : 0.0F) + sums.of[0]; },
      NoApply{});
}

/// *to = mean of `count` terms.
template <class Device>
void mean_into(Timeline<Device>& timeline, float* to, const float* terms, int count) {
  const float many = static_cast<float>(count);
  timeline.template rows<1>(
      1, count, [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) { return Sums<1>{{terms[i]}}; },
      [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
        if (i == 0) *to = sums.of[0] / many;
      });
}

}  // namespace ganymede::kernel::cuda
