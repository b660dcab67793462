#pragma once
// Counts and lists of the public operations of TensorOps. Only tensor_ops.cpp and modulation.cpp include this file.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "kernel/ops/launch_list.hpp"
#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

inline constexpr double kFloat = sizeof(float);

[[maybe_unused]] inline bool same_shape(Tensor a, Tensor b) { return a.features == b.features && a.batch == b.batch; }

inline double count_of(Tensor x) { return static_cast<double>(x.size()); }

using KernelKind = traces::TraceKernel::Kind;
using GrowsBy = traces::TraceKernel::Growth;

/// The extents of a product for one image (see TraceKernel).
struct ProductExtents {
  GrowsBy grows;
  std::int64_t m, n, k;
  bool transposed_a, transposed_b;
};

/// True for operations whose results need sums over several elements.
inline bool reduces(std::string_view op) {
  return op.starts_with("batch_norm") || op.starts_with("pixel_norm") || op.starts_with("minibatch_stddev") ||
         op.starts_with("instance_norm") || op.starts_with("demodulate") || op == "channel_products" || op == "sum" ||
         op == "gradient_penalty" || op == "squared_error" || op == "absolute_error" || op == "sample_code_backward";
}

/// Rounds down to quarters: a mask has a quarter of the bytes of a tensor of floats, and half of those of one of bf16.
inline double quarters(double share) { return std::floor(4 * share + 1e-9) / 4; }

/// Counts the cost of one operation from construction to destruction, lists its kernels, and measures its time if that
/// is wanted. The backend says how many kernels were launched meanwhile (TensorOps::launched).
class TensorOps::Counted {
  using Clock = std::chrono::steady_clock;

 public:
  /// An operation over the elements of `over` that reads and writes so many floats in all.
  Counted(TensorOps& ops, const char* op, Tensor over, double read, double written) : Counted(ops, {}) {
    also(op, over, read, written);
  }
  /// A convolution or one of its gradients over `batch` images.
  Counted(TensorOps& ops, KernelKind kind, const ConvolutionShape& shape, int batch, double read, double written)
      : Counted(ops, {.flops = shape.flops() * batch, .bytes_read = kFloat * read, .bytes_written = kFloat * written}) {
    if (ops.launches_ != nullptr) add_convolution(kind, shape);
  }
  /// A product whose extents for one image are those of `product`.
  Counted(TensorOps& ops, const ProductExtents& product, double flops, double read, double written)
      : Counted(ops, {.flops = flops, .bytes_read = kFloat * read, .bytes_written = kFloat * written}) {
    if (ops.launches_ == nullptr) return;
    traces::TraceKernel& kernel = add(KernelKind::product);
    kernel.grows = product.grows;
    kernel.m = product.m, kernel.n = product.n, kernel.k = product.k;
    kernel.transposed_a = product.transposed_a, kernel.transposed_b = product.transposed_b;
  }
  /// An operation over `count` parameters, which are as many for any batch; `read` and `written` for each of them.
  Counted(TensorOps& ops, const char* op, std::size_t count, double read, double written) : Counted(ops, {}) {
    also_parameters(op, count, read, written);
  }
  ~Counted() {
    const std::int64_t launched = ops_.launched() - launched_;
    ops_.work_.launches += launched;
    if (ops_.launches_ != nullptr) {
      // A launch may do what is listed as several kernels; it is the first of them.
      for (; listed_ > launched; --listed_) ops_.launches_->kernels.pop_back();
      if (launched > listed_) add_further(launched - listed_);
    }
    if (ops_.timed_) ops_.work_.seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  /// Adds a kernel of the operation that goes over the elements of `over`.
  void also(const char* op, Tensor over, double read, double written) {
    ops_.work_ += {.bytes_read = kFloat * read, .bytes_written = kFloat * written};
    if (ops_.launches_ != nullptr) add_moving(op, over, read, written);
  }
  /// Adds a kernel of the operation that goes over `count` parameters.
  void also_parameters(const char* op, std::size_t count, double read, double written) {
    const auto many = static_cast<double>(count);
    ops_.work_ += {.bytes_read = kFloat * read * many, .bytes_written = kFloat * written * many};
    if (ops_.launches_ == nullptr) return;
    traces::TraceKernel& kernel = add(KernelKind::elementwise);
    kernel.op = op;
    kernel.grows = GrowsBy::none;
    kernel.cols = static_cast<std::int64_t>(count);
    kernel.reads = read, kernel.writes = written;
    if (ops_.element_type_ != ElementType::fp32) kernel.precision = "fp32";  // whatever tensors are stored in
  }

 private:
  Counted(TensorOps& ops, const Work& work)
      : ops_(ops), begin_(ops.timed_ ? Clock::now() : Clock::time_point{}), launched_(ops.launched()) {
    ops.work_ += work;
  }

  traces::TraceKernel& add(KernelKind kind) {
    ++listed_;
    traces::TraceKernel& kernel = ops_.launches_->kernels.emplace_back();
    kernel.kind = kind;
    kernel.layer = ops_.layer_;
    return kernel;
  }

  /// Data that an operation reads besides its elements, such as statistics, is left out of the traffic of an element.
  void add_moving(const char* op, Tensor over, double read, double written) {
    traces::TraceKernel& kernel = add(reduces(op) ? KernelKind::normalization : KernelKind::elementwise);
    kernel.op = op;
    kernel.rows = std::max(1, over.batch / ops_.launches_->batch);  // some see each position as an image
    kernel.cols = over.features;
    kernel.reads = quarters(read / ops_.traffic(over));
    kernel.writes = quarters(written / ops_.traffic(over));
  }

  void add_further(std::int64_t launches) {
    traces::TraceKernel& kernel = add(KernelKind::elementwise);
    kernel.op = kFurtherKernel;
    kernel.grows = GrowsBy::none;
    kernel.times = static_cast<double>(launches);
  }

  void add_convolution(KernelKind kind, const ConvolutionShape& shape) {
    traces::TraceKernel& kernel = add(kind);
    kernel.grows = GrowsBy::batch;
    kernel.in_channels = shape.in_channels, kernel.out_channels = shape.out_channels;
    kernel.in = {shape.in_frames, shape.in_height, shape.in_width};
    kernel.window = {shape.kernel_frames, shape.kernel, shape.kernel};
    kernel.padding = {shape.padding_frames, shape.padding, shape.padding};
    kernel.stride = {1, shape.stride, shape.stride};
    kernel.channels_last = true;  // on GPUs
  }

  TensorOps& ops_;
  Clock::time_point begin_;
  std::int64_t launched_;    // before the operation
  std::int64_t listed_ = 0;  // kernels that were listed with their shapes
};

}  // namespace ganymede::kernel
