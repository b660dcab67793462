#pragma once
// A Device (see kernel/ops/cuda/timeline.hpp) that runs the GPU backend's operations on the CPU: a kernel's threads are
// iterations of a loop, products follow their definition. It tests without a GPU what the backend computes, in which
// memory, and what it replays; it does not test CUDA's libraries and the launches.

#include <chrono>
#include <cstdlib>
#include <functional>

#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/direct_convolution.hpp"

namespace ganymede::kernel {

class HostDevice {
 public:
  explicit HostDevice(int loads_a_step) : slots_(static_cast<std::size_t>(loads_a_step) + 1) {}
  std::string name() const { return "host"; }
  std::string instructions() const { return "none"; }
  std::string precision() const { return "fp32"; }
  std::string bus_id() const { return ""; }
  double available_bytes() const { return 0; }
  Buffer allocate(std::size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
    std::memset(memory, 0, bytes);
    return {{memory, {[](void* data, std::size_t) { std::free(data); }, bytes, nullptr}}};
  }
  std::size_t convolution_workspace_bytes(const ConvolutionShape&, int) const { return 0; }
  void to_host(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void to_device(void* to, const void* from, std::size_t bytes) {
    EXPECT_FALSE(capturing_);
    std::memcpy(to, from, bytes);
  }
  void synchronize() {}

  template <class Body>
  void each(std::size_t count, const Body& body) {
    run([=] {
      for (std::size_t i = 0; i < count; ++i) body(i);
    });
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int row_count, int column_count, const Term& term, const Finish& finish, const Apply& apply) {
    const auto rows = static_cast<std::size_t>(row_count), columns = static_cast<std::size_t>(column_count);
    run([=] {
      for (std::size_t c = 0; c < columns; ++c) {
        finish(c, sum_of<N>(rows, [&](std::size_t r) { return term(r, c); }));
        for (std::size_t r = 0; r < rows; ++r) apply(r, c);
      }
    });
  }
  template <int N, class Term, class Apply>
  void rows(int row_count, int row_length, const Term& term, const Apply& apply) {
    const auto rows = static_cast<std::size_t>(row_count), length = static_cast<std::size_t>(row_length);
    run([=] {
      for (std::size_t r = 0; r < rows; ++r) {
        const cuda::Sums<N> sums = sum_of<N>(length, [&](std::size_t i) { return term(r, i); });
        for (std::size_t i = 0; i < length; ++i) apply(r, i, sums);
      }
    });
  }
  void gemm(const cuda::Gemm& g) {
    run([g] {
      const auto at = [](const float* matrix, int lead, bool transposed, int row, int column) {
        return static_cast<double>(
            matrix[transposed ? std::ptrdiff_t{row} * lead + column : std::ptrdiff_t{column} * lead + row]);
      };
      for (int j = 0; j < g.n; ++j)
        for (int i = 0; i < g.m; ++i) {
          double sum = 0;
          for (int k = 0; k < g.k; ++k)
            sum += at(g.a, g.a_lead, g.transpose_a, i, k) * at(g.b, g.b_lead, g.transpose_b, k, j);
          float& c = g.c[std::ptrdiff_t{j} * g.c_lead + i];
          c = static_cast<float>(sum) + (g.beta == 0 ? 0.0F : g.beta * c);
        }
    });
  }
  void convolve(const cuda::ConvolutionCall& call, const Buffer&) { cuda::convolve_directly(*this, call); }

  cuda::StagedImages stage(const void* from, std::size_t bytes) {
    stride_ = std::max(stride_, bytes);
    if (staged_.size() != slots_ * stride_) staged_.resize(slots_ * stride_);
    slot_ = (slot_ + 1) % slots_;
    ++stagings;
    std::memcpy(staged_.data() + slot_ * stride_, from, bytes);
    return {staged_.data(), slot_, stride_};
  }

  void begin_capture() {
    capturing_ = true;
    captured_.clear();
  }
  void end_capture() { capturing_ = false; }
  void replay(void* device_words, const void* words, std::size_t bytes) {
    std::memcpy(device_words, words, bytes);
    for (const auto& kernel : captured_) kernel();
    ++replays;
  }
  int replays = 0, stagings = 0;

  void mark(std::size_t i) {
    run([this, i] {
      marks_.resize(std::max(marks_.size(), i + 1));
      marks_[i] = std::chrono::steady_clock::now();
    });
  }
  double mark_s(std::size_t i) const { return std::chrono::duration<double>(marks_[i] - marks_[0]).count(); }

  void join(Communicator& communicator) { communicator_ = &communicator; }
  void reduce(float* gradients, std::size_t count) {
    run([=, this] {
      communicator_->sum_gradients({gradients, count});
      for (std::size_t i = 0; i < count; ++i) gradients[i] /= static_cast<float>(communicator_->shard().ranks);
    });
  }
  void finish_reductions() {}

 private:
  template <int N, class Term>
  static cuda::Sums<N> sum_of(std::size_t count, const Term& term) {
    double sums[N] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const cuda::Sums<N> one = term(i);
      for (int k = 0; k < N; ++k) sums[k] += static_cast<double>(one.of[k]);
    }
    cuda::Sums<N> all;
    for (int k = 0; k < N; ++k) all.of[k] = static_cast<float>(sums[k]);
    return all;
  }

  template <class Kernel>
  void run(const Kernel& kernel) {
    if (capturing_)
      captured_.push_back(kernel);
    else
      kernel();
  }

  bool capturing_ = false;
  Communicator* communicator_ = nullptr;
  std::vector<std::chrono::steady_clock::time_point> marks_;
  std::vector<std::function<void()>> captured_;
  std::vector<std::uint8_t> staged_;
  std::size_t stride_ = 0, slot_ = 0, slots_;
};

inline std::unique_ptr<Backend> make_hosted_cuda_backend(CudaOptions options) {
  return cuda::make_backend(std::make_shared<HostDevice>(options.loads_a_step), options);
}

}  // namespace ganymede::kernel
