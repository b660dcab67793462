#pragma once
// A Device (see kernel/ops/cuda/timeline.hpp) that runs the GPU backend's operations on the CPU: a kernel's threads are
// iterations of a loop, products follow their definition. It tests without a GPU what the backend computes, in which
// memory, and what it replays; it does not test CUDA's libraries and the launches.

#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <set>

#include "host_loops.hpp"
#include "kernel/ops/cuda/direct_convolution.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/cuda/make_backend.hpp"

namespace ganymede::kernel {

class HostDevice {
 public:
  explicit HostDevice(int loads_a_step, Precision precision = Precision::fp32)
      : precision_(precision), slots_(kStepsAhead * static_cast<std::size_t>(loads_a_step) + 1) {}
  std::string name() const { return "host"; }
  std::string instructions() const { return "none"; }
  std::string precision() const { return std::string(kPrecisionNames[static_cast<std::size_t>(precision_)]); }
  std::string bus_id() const { return ""; }
  double available_bytes() const { return 0; }
  Buffer allocate(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    std::memset(memory, 0, bytes);
    return {{memory, {[](void* data, std::size_t) { std::free(data); }, bytes, nullptr}}};
  }
  Buffer allocate_host(std::size_t bytes) {
    Buffer memory = allocate(bytes);
    pinned_.insert(memory.memory.get());
    return memory;
  }
  std::size_t convolution_workspace_bytes(const ConvolutionShape&, int) const { return 0; }
  void to_host(void* to, const void* from, std::size_t bytes) {
    synchronize();
    std::memcpy(to, from, bytes);
  }
  void to_device(void* to, const void* from, std::size_t bytes) {
    EXPECT_FALSE(capturing_);
    EXPECT_TRUE(bytes <= kLargeCopy || pinned_.contains(from)) << "a large copy from pageable memory";
    synchronize();
    std::memcpy(to, from, bytes);
  }
  void synchronize() {
    while (!late_.empty()) run_first();
  }

  std::int64_t launched() const { return launched_; }

  template <class Body>
  void each(std::size_t count, const Body& body) {
    ++launched_;
    counts.push_back(count);
    run([=] { each_on_host(count, body); });
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int rows, int columns, const Term& term, const Finish& finish, const Apply& apply) {
    ++launched_;
    run([=] { columns_on_host<N>(cuda::size_of(rows), cuda::size_of(columns), term, finish, apply); });
  }
  template <int N, class Term, class Apply>
  void rows(int rows, int length, const Term& term, const Apply& apply) {
    ++launched_;
    run([=] { rows_on_host<N>(cuda::size_of(rows), cuda::size_of(length), term, apply); });
  }
  void gemm(const cuda::Gemm& call) {
    ++launched_;
    const std::size_t bytes = bytes_of(call.operands);
    const char zero[4] = {};
    products_of_zeros += std::memcmp(call.a, zero, bytes) == 0 && std::memcmp(call.b, zero, bytes) == 0 ? 1 : 0;
    products_with_epilogues += call.epilogue != cuda::Epilogue::none ? 1 : 0;
    run([call] { gemm_on_host(call); });
  }
  void convolve(const cuda::ConvolutionCall& call, const Buffer&) {
    if (precision_ == Precision::bf16)
      cuda::convolve_directly<Bf16>(*this, call);
    else
      cuda::convolve_directly<float>(*this, call);
  }

  cuda::StagedImages stage(const void* from, std::size_t bytes) {
    stride_ = std::max(stride_, bytes);
    if (staged_.size() != slots_ * stride_) staged_.resize(slots_ * stride_);
    slot_ = (slot_ + 1) % slots_;
    ++stagings;
    std::memcpy(staged_.data() + slot_ * stride_, from, bytes);
    return {staged_.data(), slot_, stride_};
  }

  void begin_capture() {
    synchronize();
    capturing_ = true;
    captured_.clear();
  }
  void end_capture(int which) {
    capturing_ = false;
    graphs_[which] = std::move(captured_);
  }
  void discard_capture() {
    synchronize();
    for (auto& graph : graphs_) graph.clear();
  }
  /// Runs as late as a GPU may: when somebody waits for it.
  void replay(int which) {
    late_.push_back([this, which] {
      for (const auto& kernel : graphs_[which]) kernel();
    });
    ++replays;
  }
  void mark_end(std::size_t slot) {
    ++ends_pending_[slot];
    late_.push_back([this, slot] { --ends_pending_[slot]; });
  }
  void await_end(std::size_t slot) {
    while (ends_pending_[slot] > 0) run_first();
  }
  int replays = 0, stagings = 0;
  std::vector<std::size_t> counts;  ///< those with which each() was called
  int products_of_zeros = 0, products_with_epilogues = 0, marks = 0;

  void mark(std::size_t i) {
    run([this, i] {
      ++marks;
      marks_.resize(std::max(marks_.size(), i + 1));
      marks_[i] = std::chrono::steady_clock::now();
    });
  }
  double mark_s(std::size_t i) const { return std::chrono::duration<double>(marks_[i] - marks_[0]).count(); }

  void join(Communicator& communicator) { communicator_ = &communicator; }
  void reduce(float* gradients, std::size_t count) {
    run([=, this] {
      communicator_->sum_gradients({gradients, count});
      const float share = 1.0F / static_cast<float>(communicator_->shard().ranks);
      for (std::size_t i = 0; i < count; ++i) gradients[i] *= share;
    });
  }
  void gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t bytes) {
    run([=, this] {
      const auto ranks = static_cast<std::size_t>(communicator_->shard().ranks);
      communicator_->gather_gradients({mine, bytes}, {all, bytes * ranks});
    });
  }
  void finish_reductions() {}
  void leave() {}  // nothing is captured or in flight

 private:
  template <class Kernel>
  void run(const Kernel& kernel) {
    if (capturing_) {
      captured_.push_back(kernel);
      return;
    }
    synchronize();
    kernel();
  }
  void run_first() {
    const std::function<void()> first = std::move(late_.front());
    late_.pop_front();
    first();
  }

  Precision precision_;
  std::int64_t launched_ = 0;
  static constexpr std::size_t kLargeCopy = std::size_t{32} << 20;  // larger ones are measured (device_limits.cpp)
  std::set<const void*> pinned_;
  bool capturing_ = false;
  Communicator* communicator_ = nullptr;
  std::vector<std::chrono::steady_clock::time_point> marks_;
  std::vector<std::function<void()>> captured_, graphs_[2];
  std::deque<std::function<void()>> late_;
  int ends_pending_[kStepsAhead] = {};
  std::vector<std::uint8_t> staged_;
  std::size_t stride_ = 0, slot_ = 0, slots_;
};

namespace cuda {
/// As the template; hosted_backend.cpp compiles it once, with the operations, which are most of what these tests
/// compute.
std::unique_ptr<Backend> make_backend(std::shared_ptr<HostDevice> device, const CudaOptions& options);
}  // namespace cuda

std::unique_ptr<Backend> make_hosted_cuda_backend(CudaOptions options);

}  // namespace ganymede::kernel
