#pragma once
// One kernel of a GPU as a shape: what it computes, on how many numbers and in which precision.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::calibration {

enum class KernelKind {
  kConvolution,
  kConvolutionDataGradient,
  kConvolutionWeightGradient,
  kProduct,
  kBatchedProduct,
  kElementwise,
  kNormalization,  ///< reductions too
  kSoftmax
};
std::string_view to_string(
    KernelKind kind);  ///< "convolution", "convolution-dgrad", "convolution-wgrad", "product", ...
std::vector<std::string> kernel_kind_names();  ///< in the order of the enumeration
bool is_convolution(KernelKind kind);
bool is_product(KernelKind kind);

enum class KernelPrecision { kFp32, kTf32, kFp16, kBf16 };
std::string_view to_string(KernelPrecision precision);  ///< "fp32", "tf32", "fp16" or "bf16"
std::int64_t bytes_per_number(KernelPrecision precision);

struct Kernel {
  KernelKind kind = KernelKind::kElementwise;
  KernelPrecision precision = KernelPrecision::kFp32;
  std::string name{};  ///< of the layer that it belongs to

  // A convolution of either kind has the shape of the forward one. A transposed convolution's forward pass is the data
  // gradient of the convolution that it mirrors.
  std::int64_t batch = 1, in_channels = 0, in_h = 1, in_w = 1, out_channels = 0;
  std::int64_t kernel_h = 1, kernel_w = 1, pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, groups = 1;
  std::int64_t in_d = 1, kernel_d = 1, pad_d = 0, stride_d = 1;
  bool channels_last = false;  ///< otherwise tensor cores need the numbers rearranged, which counts as its time

  // A product is `batch` times (m x k) by (k x n).
  std::int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false, transposed_b = false;

  // The other kinds work on rows x cols numbers; normalization and softmax along each row.
  std::int64_t rows = 0, cols = 0;
  std::string op{};  ///< "add", "mul", "relu", "tanh", "ln", "softmax", ...
  double reads_per_element = 1, writes_per_element = 1;
  double shared_per_element = 0;  ///< words of 32 bits that it reads and writes in shared memory, for each element

  std::int64_t out_d() const { return extent(in_d, kernel_d, pad_d, stride_d); }
  std::int64_t out_h() const { return extent(in_h, kernel_h, pad_h, stride_h); }
  std::int64_t out_w() const { return extent(in_w, kernel_w, pad_w, stride_w); }

 private:
  static std::int64_t extent(std::int64_t in, std::int64_t kernel, std::int64_t pad, std::int64_t stride) {
    const std::int64_t room = in + 2 * pad - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// The largest size in any direction, as in the libraries.
inline constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

/// Floating-point operations of the kernel by definition, two a multiply-add, whatever algorithm runs.
double direct_flops(const Kernel& kernel);

/// Bytes of its operands and result, each counted once.
double operand_bytes(const Kernel& kernel);

/// Throws ConfigError "where: in_channels: found 0, expected ..." for a shape that no kernel has: a size of zero or
/// less, an output smaller than one, groups that do not divide the channels.
void check_kernel(const Kernel& kernel, std::string_view where);

}  // namespace ganymede::calibration
