#pragma once
// What all operations of the GPU backend stand on: launches, the numbers that change from step to step, and a step's
// capture and replay. A Machine (see cuda_ops.hpp) runs them.

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "common/errors.hpp"
#include "kernel/ops.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/portable.hpp"

namespace ganymede::kernel::cuda {

/// How long a step may be before it is captured: the numbers that change in it.
inline constexpr std::size_t kDynamicMost = 65536;

struct Gemm {
  bool transpose_a, transpose_b;
  int m, n, k;
  const float* a;
  int a_lead;
  const float* b;
  int b_lead;
  float beta;
  float* c;
  int c_lead;
};

enum class Pass { forward, data, weights };

/// x [batch x in_frames x in_height x in_width x in_channels], y likewise, weight [out_channels x taps x in_channels];
/// the pass says which of them is computed from the others.
struct ConvolutionCall {
  Pass pass;
  ConvolutionShape shape;
  int batch;
  float *x, *y, *weight;
  bool accumulate;  ///< of the weights' gradients
};

/// Bytes from the host that a kernel will read: slot `slot` of `stride` bytes each.
struct Staged {
  const std::uint8_t* base;
  std::size_t slot, stride;
};

/// After sums of columns: nothing more.
struct Nothing {
  GANYMEDE_DEVICE void operator()(std::size_t, std::size_t) const {}
};

inline std::size_t size_of(int value) { return static_cast<std::size_t>(value); }

template <class Machine>
class CudaBase : public Ops {
 public:
  CudaBase(std::unique_ptr<Machine> machine, const CudaOptions& options)
      : machine_(std::move(machine)), options_(options), scratch_(machine_->allocate(kScratchFloats * sizeof(float))) {
    if (!options_.graph) return;
    dynamic_ = machine_->allocate(kDynamicMost * sizeof(std::uint32_t));
    words_.reserve(kDynamicMost);
  }

  std::string backend() const override { return "cuda"; }
  std::string device() const override { return machine_->name(); }
  std::string instructions() const override { return machine_->instructions(); }
  int threads() const override { return 1; }
  std::string bus_id() const override { return machine_->bus_id(); }
  std::string precision() const override { return machine_->precision(); }
  double available_bytes() const override { return machine_->available_bytes(); }
  bool channels_last() const override { return true; }
  const Machine& machine() const { return *machine_; }

  std::size_t dense_workspace_bytes(int, int, int) const override { return 0; }
  std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const override {
    return machine_->convolution_workspace_bytes(shape, batch);
  }

  void read(std::span<float> host, const float* from) override {
    if (finish_step()) wait_usefully();
    if (!host.empty()) machine_->to_host(host.data(), from, host.size_bytes());
  }
  void write(float* to, std::span<const float> host) override {
    assert(mode_ == Mode::eager);
    if (!host.empty()) machine_->to_device(to, host.data(), host.size_bytes());
  }
  void synchronize() override { machine_->synchronize(); }

  // A step runs as usual once, so that libraries load and choose; then it is captured; from then on it is only walked
  // through for the numbers that change, and replayed when its losses are read.
  void begin_step() override {
    in_step_ = true;
    marks_ = 0;
    if (!options_.graph) return;
    assert(mode_ == Mode::eager);
    words_.clear();
    launches_ = 0;
    if (!warm_) return;
    mode_ = captured_launches_ > 0 ? Mode::replay : Mode::capture;
    if (mode_ == Mode::capture) machine_->begin_capture();
  }
  void forget_step() override {
    assert(mode_ == Mode::eager);
    warm_ = false;
    captured_launches_ = 0;
    ahead_.pixels = nullptr;
  }
  void stage_images(std::span<const std::uint8_t> host_pixels) override {
    ahead_ = {host_pixels.data(), machine_->stage(host_pixels.data(), host_pixels.size())};
  }

  /// Where the pixels are, which may have been sent already.
  Staged staged(std::span<const std::uint8_t> host_pixels) {
    if (ahead_.pixels != host_pixels.data()) stage_images(host_pixels);
    ahead_.pixels = nullptr;
    return ahead_.staged;
  }

  bool has_clock() const override { return true; }
  void mark(std::size_t i) override {
    marks_ = i + 1;
    if (launch()) machine_->mark(i);
  }
  double mark_s(std::size_t i) override { return machine_->mark_s(i); }

  bool reduces() const override { return true; }
  void join(Communicator& communicator) override { machine_->join(communicator); }
  void reduce_gradients(float* gradients, std::size_t count) override {
    if (launch()) machine_->reduce(gradients, count);
  }
  void finish_reductions() override {
    if (launch()) machine_->finish_reductions();
  }

  Buffer do_allocate(std::size_t bytes) override { return machine_->allocate(bytes); }

  // What follows is nobody else's, but nvcc takes no kernel from a private function.

  enum class Mode { eager, capture, replay };
  static constexpr std::size_t kScratchFloats = std::size_t{1} << 20;

  /// Launches, unless the step is only walked through.
  template <class Body>
  void each(std::size_t count, const Body& body) {
    if (launch()) machine_->each(count, body);
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int rows, int columns, const Term& term, const Finish& finish, const Apply& apply) {
    if (launch()) machine_->template columns<N>(rows, columns, term, finish, apply);
  }
  template <int N, class Term, class Apply>
  void rows(int rows, int length, const Term& term, const Apply& apply) {
    if (launch()) machine_->template rows<N>(rows, length, term, apply);
  }
  void gemm(const Gemm& call) {
    if (launch()) machine_->gemm(call);
  }
  void convolve(const ConvolutionCall& call) {
    if (launch()) machine_->convolve(call, workspace());
  }
  bool launch() {
    ++launches_;
    return mode_ != Mode::replay;
  }

  /// If there is a step to end: the captured one is complete, or the one that was walked through is due.
  bool finish_step() {
    if (!std::exchange(in_step_, false)) return false;
    if (marks_ > 0) mark(marks_);
    warm_ = true;
    const Mode mode = std::exchange(mode_, Mode::eager);
    if (mode == Mode::eager) return true;
    if (mode == Mode::capture) {
      machine_->end_capture();
      captured_launches_ = launches_;
      captured_words_ = words_.size();
    }
    // What the graph does is fixed: the walk must have met the same calls.
    if (launches_ != captured_launches_ || words_.size() != captured_words_)
      throw Failure("the step has changed since it was captured; --no-graph runs it call by call");
    machine_->replay(dynamic_.memory.get(), words_.data(), words_.size() * sizeof(std::uint32_t));
    return true;
  }

  Dynamic dynamic(std::uint32_t word) {
    if (mode_ == Mode::eager) return {nullptr, word};
    assert(words_.size() < kDynamicMost);
    words_.push_back(word);
    return {static_cast<const std::uint32_t*>(dynamic_.memory.get()) + words_.size() - 1, 0};
  }
  Dynamic dynamic(float number) { return dynamic(bits_of(number)); }
  /// Drawn once a call whatever its size: all processes draw alike.
  Key draw_key(RandomStream& random) {
    const std::uint64_t bits = random.next();
    const Dynamic low = dynamic(static_cast<std::uint32_t>(bits));
    return {low, dynamic(static_cast<std::uint32_t>(bits >> 32))};
  }

  float* scratch([[maybe_unused]] std::size_t floats) {
    assert(floats <= kScratchFloats);
    return scratch_.floats();
  }

  void sum_columns(float* to, const float* from, int row_count, int column_count, bool accumulate) {
    const std::size_t width = size_of(column_count);
    columns<1>(
        row_count, column_count,
        [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) { return Sums<1>{{from[row * width + c]}}; },
        [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) { to[c] = (accumulate ? to[c] : 0.0F) + sums.of[0]; },
        Nothing{});
  }
  void mean_into(float* to, const float* terms, int count) {
    const float many = static_cast<float>(count);
    rows<1>(
        1, count, [=] GANYMEDE_DEVICE(std::size_t, std::size_t i) { return Sums<1>{{terms[i]}}; },
        [=] GANYMEDE_DEVICE(std::size_t, std::size_t i, const Sums<1>& sums) {
          if (i == 0) *to = sums.of[0] / many;
        });
  }

 protected:
  std::unique_ptr<Machine> machine_;
  CudaOptions options_;
  Mode mode_ = Mode::eager;

 private:
  Buffer scratch_, dynamic_;
  std::vector<std::uint32_t> words_;
  bool in_step_ = false;
  bool warm_ = false;  ///< the step ran once call by call
  std::size_t launches_ = 0, captured_launches_ = 0, captured_words_ = 0, marks_ = 0;
  struct {
    const std::uint8_t* pixels = nullptr;  ///< null: nothing
    Staged staged = {};
  } ahead_;  ///< sent before it was asked for
};

}  // namespace ganymede::kernel::cuda
