#include "calibration/kernels/kernel.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>

#include "common/errors.hpp"

namespace ganymede::calibration {
namespace {

constexpr std::array<std::string_view, 8> kKindNames = {
    "convolution",     "convolution-dgrad", "convolution-wgrad", "product",
    "batched-product", "elementwise",       "normalization",     "softmax"};
constexpr double kMaxNumbers = 1e15;  // of a tensor: far above any, so that their counts fit 64 bits

struct Size {
  std::string_view name;
  std::int64_t value, least;
};

template <class Sizes>
void check_sizes(const Sizes& sizes, std::string_view where) {
  for (const Size& size : sizes)
    if (size.value < size.least || size.value > kMaxSize)
      throw ConfigError(fmt::format("{}: {}: found {}, expected an integer from {} to {}", where, size.name, size.value,
                                    size.least, kMaxSize));
}

void check_volume(std::initializer_list<std::int64_t> sizes, std::string_view tensor, std::string_view where) {
  double numbers = 1;
  for (const std::int64_t size : sizes) numbers *= static_cast<double>(size);
  if (numbers > kMaxNumbers)
    throw ConfigError(fmt::format("{}: found {:.3g} numbers in its {}, expected at most {:.0g}", where, numbers, tensor,
                                  kMaxNumbers));
}

void check_convolution(const Kernel& c, std::string_view where) {
  check_sizes(std::array<Size, 16>{{{"batch", c.batch, 1},
                                    {"in_channels", c.in_channels, 1},
                                    {"out_channels", c.out_channels, 1},
                                    {"in_d", c.in_d, 1},
                                    {"in_h", c.in_h, 1},
                                    {"in_w", c.in_w, 1},
                                    {"kernel_d", c.kernel_d, 1},
                                    {"kernel_h", c.kernel_h, 1},
                                    {"kernel_w", c.kernel_w, 1},
                                    {"pad_d", c.pad_d, 0},
                                    {"pad_h", c.pad_h, 0},
                                    {"pad_w", c.pad_w, 0},
                                    {"stride_d", c.stride_d, 1},
                                    {"stride_h", c.stride_h, 1},
                                    {"stride_w", c.stride_w, 1},
                                    {"groups", c.groups, 1}}},
              where);
  if (c.out_d() < 1 || c.out_h() < 1 || c.out_w() < 1)
    throw ConfigError(
        fmt::format("{}: found an output of {} x {} x {}, expected at least one in each direction: the "
                    "filter is larger than the padded input",
                    where, c.out_d(), c.out_h(), c.out_w()));
  check_volume({c.batch, c.in_channels, c.in_d, c.in_h, c.in_w}, "input", where);
  check_volume({c.batch, c.out_channels, c.out_d(), c.out_h(), c.out_w()}, "output", where);
  check_volume({c.in_channels, c.out_channels, c.kernel_d, c.kernel_h, c.kernel_w}, "filter", where);
  if (c.in_channels % c.groups || c.out_channels % c.groups)
    throw ConfigError(fmt::format("{}: groups: found {}, expected a divisor of {} and {} channels", where, c.groups,
                                  c.in_channels, c.out_channels));
}

double convolution_flops(const Kernel& c) {
  return 2.0 * static_cast<double>(c.batch) * static_cast<double>(c.out_d() * c.out_h() * c.out_w()) *
         static_cast<double>(c.out_channels) * static_cast<double>(c.in_channels / c.groups) *
         static_cast<double>(c.kernel_d * c.kernel_h * c.kernel_w);
}

double convolution_numbers(const Kernel& c) {
  const auto in =
      static_cast<double>(c.batch) * static_cast<double>(c.in_channels) * static_cast<double>(c.in_d * c.in_h * c.in_w);
  const auto out = static_cast<double>(c.batch) * static_cast<double>(c.out_channels) *
                   static_cast<double>(c.out_d() * c.out_h() * c.out_w());
  const auto weights = static_cast<double>(c.out_channels) * static_cast<double>(c.in_channels / c.groups) *
                       static_cast<double>(c.kernel_d * c.kernel_h * c.kernel_w);
  return in + out + weights;
}

}  // namespace

std::string_view to_string(KernelKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::vector<std::string> kernel_kind_names() { return {kKindNames.begin(), kKindNames.end()}; }

bool is_convolution(KernelKind kind) {
  return kind == KernelKind::kConvolution || kind == KernelKind::kConvolutionDataGradient ||
         kind == KernelKind::kConvolutionWeightGradient;
}

bool is_product(KernelKind kind) { return kind == KernelKind::kProduct || kind == KernelKind::kBatchedProduct; }

std::string_view to_string(KernelPrecision precision) {
  constexpr std::array<std::string_view, 4> names = {"fp32", "tf32", "fp16", "bf16"};
  return names[static_cast<std::size_t>(precision)];
}

std::int64_t bytes_per_number(KernelPrecision precision) {
  return precision == KernelPrecision::kFp16 || precision == KernelPrecision::kBf16 ? 2 : 4;
}

double direct_flops(const Kernel& kernel) {
  if (is_convolution(kernel.kind)) return convolution_flops(kernel);
  if (is_product(kernel.kind))
    return 2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
           static_cast<double>(kernel.k);
  return static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols);
}

double operand_bytes(const Kernel& kernel) {
  const auto width = static_cast<double>(bytes_per_number(kernel.precision));
  if (is_convolution(kernel.kind)) return width * convolution_numbers(kernel);
  const auto m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
  if (is_product(kernel.kind)) return width * static_cast<double>(kernel.batch) * (m * k + k * n + m * n);
  return width * direct_flops(kernel) * (kernel.reads_per_element + kernel.writes_per_element);
}

void check_kernel(const Kernel& kernel, std::string_view where) {
  if (is_convolution(kernel.kind)) return check_convolution(kernel, where);
  if (is_product(kernel.kind)) {
    check_sizes(
        std::array<Size, 4>{{{"batch", kernel.batch, 1}, {"m", kernel.m, 1}, {"n", kernel.n, 1}, {"k", kernel.k, 1}}},
        where);
    check_volume({kernel.batch, kernel.m, kernel.k}, "left operand", where);
    check_volume({kernel.batch, kernel.k, kernel.n}, "right operand", where);
    return check_volume({kernel.batch, kernel.m, kernel.n}, "result", where);
  }
  // An optimizer moves all parameters of a network as one row.
  for (const auto& [name, size] : {std::pair{"rows", kernel.rows}, std::pair{"cols", kernel.cols}})
    if (size < 1) throw ConfigError(fmt::format("{}: {}: found {}, expected at least 1", where, name, size));
  check_volume({kernel.rows, kernel.cols}, "tensor", where);
  if (kernel.reads_per_element < 0 || kernel.writes_per_element < 0)
    throw ConfigError(fmt::format("{}: reads_per_element, writes_per_element: found {} and {}, expected at least 0",
                                  where, kernel.reads_per_element, kernel.writes_per_element));
}

}  // namespace ganymede::calibration
