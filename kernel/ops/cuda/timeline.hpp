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
//   begin_capture, end_capture(which), discard_capture, replay(which, ...)
//                                             of a step; which of two it is, 0 or 1
//   mark, mark_s                              timestamps
//   launched()                                kernels launched since construction; a call of a library counts as one
//   join, reduce, gather, finish_reductions, leave
//                                             averages of gradients and other exchanges between replicas

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
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
      : device_(std::move(device)), graph_(graph), scratch_(device_->allocate(kScratchFloats * sizeof(float))) {
    if (!graph) return;
    device_words_ = device_->allocate(kMaxStepWords * sizeof(std::uint32_t));
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
  // then on a step's calls only collect its StepWords, and the captured step is replayed when its losses are read.
  void begin_step() override {
    in_step_ = true;
    events_ = 0;
    if (!graph_) return;
    assert(mode_ == Mode::eager);
    words_.clear();
    launches_ = 0;
    if (!warm_) return;
    captured_ = &steps_[marked() ? 1 : 0];
    mode_ = captured_->launches > 0 ? Mode::replay : Mode::capture;
    if (mode_ == Mode::capture) {
      captured_->launched_at.clear();
      device_->begin_capture();
    }
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

  /// Ends the running step, if there is one: completes its capture and replays it, or replays the captured step. Then
  /// runs the host's other work while the device computes. Throws Failure if a replayed step made other calls than the
  /// captured one.
  void finish_step() {
    if (!std::exchange(in_step_, false)) return;
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
      device_->replay(which(), device_words_.memory.get(), words_.data(), words_.size() * sizeof(std::uint32_t));
    }
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
  int which() const { return static_cast<int>(captured_ - steps_.data()); }
  static constexpr std::size_t kScratchFloats = std::size_t{1} << 20;

  std::shared_ptr<Device> device_;
  bool graph_;
  Buffer scratch_, device_words_;
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
