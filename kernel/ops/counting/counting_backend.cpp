#include "kernel/ops/counting/counting_backend.hpp"

#include <algorithm>

#include "kernel/ops/cuda/every_op.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"

namespace ganymede::kernel {
namespace {

/// A Device (see kernel/ops/cuda/timeline.hpp) that counts launches.
class CountingDevice {
 public:
  explicit CountingDevice(Precision precision) : precision_(precision) {}
  std::string name() const { return "none"; }
  std::string instructions() const { return "none"; }
  std::string precision() const { return std::string(kPrecisionNames[static_cast<std::size_t>(precision_)]); }
  std::string bus_id() const { return ""; }
  double available_bytes() const { return 0; }
  std::int64_t launched() const { return launched_; }

  /// A place to which tensors refer and which nothing touches.
  Buffer allocate(std::size_t bytes) {
    static float nothing[16];
    return {{nothing, BufferRelease{[](void*, std::size_t) {}, bytes}}};
  }
  Buffer allocate_host(std::size_t bytes) { return allocate(bytes); }
  std::size_t convolution_workspace_bytes(const ConvolutionShape&, int) const { return 0; }
  void to_host(void* to, const void*, std::size_t bytes) {
    std::fill_n(static_cast<std::byte*>(to), bytes, std::byte{});
  }
  void to_device(void*, const void*, std::size_t) {}
  void synchronize() {}

  template <class Body>
  void each(std::size_t, const Body&) {
    ++launched_;
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int, int, const Term&, const Finish&, const Apply&) {
    ++launched_;
  }
  template <int N, class Term, class Apply>
  void rows(int, int, const Term&, const Apply&) {
    ++launched_;
  }
  void gemm(const cuda::Gemm&) { ++launched_; }
  void convolve(const cuda::ConvolutionCall& call, const Buffer&) {
    // A gradient of weights is converted to fp32. One kernel for a convolution and what follows needs tensor cores.
    const bool converts = precision_ == Precision::bf16 && call.pass == cuda::Pass::weights;
    const bool in_steps =
        call.after.has_value() && (precision_ == Precision::fp32 || call.shape.out_features() < kLeastFusedOutputs);
    launched_ += converts || in_steps ? 2 : 1;
  }

  cuda::StagedImages stage(const void*, std::size_t bytes) { return {nullptr, 0, bytes}; }
  void begin_capture() {}
  void end_capture(int) {}
  void discard_capture() {}
  void replay(int) {}
  void mark_end(std::size_t) {}
  void await_end(std::size_t) {}
  void mark(std::size_t) {}
  double mark_s(std::size_t) const { return 0; }
  void join(Communicator&) {}
  void reduce(float*, std::size_t) {}
  void gather(const std::uint8_t*, std::uint8_t*, std::size_t) {}
  void finish_reductions() {}
  void leave() {}

 private:
  Precision precision_;
  std::int64_t launched_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_counting_backend(Precision precision) {
  return cuda::make_backend(std::make_shared<CountingDevice>(precision), {.graph = false});
}

}  // namespace ganymede::kernel
