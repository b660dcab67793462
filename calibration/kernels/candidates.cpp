#include "calibration/kernels/candidates.hpp"

#include <algorithm>
#include <bit>

namespace ganymede::calibration {

double rough_log2(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double mantissa = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  return exponent + mantissa - 1;
}

void fill_from_blocks(Candidate& c, const BlockTime& time, const ChipRates& rates, const KernelParameters& parameters,
                      const ProductShape& shape, double bytes, int launches) {
  c.flops = 2 * shape.rows * shape.cols * shape.depth * shape.count;
  c.bytes = bytes;
  c.arithmetic_s = smooth_maximum(time.arithmetic_s, time.l2_s);
  c.memory_s = bytes / rates.memory_bandwidth;
  c.launch_s = launches * parameters[Scalar::kLaunchSeconds];
  c.analytic_s = smooth_maximum(c.arithmetic_s, c.memory_s) + c.launch_s;
  c.floor_s = c.flops / (2 * rates.multiprocessors * rates.macs_per_cycle * rates.clock_hz);
  c.blocks = time.blocks, c.waves = time.waves;
  const double wide = std::max(shape.rows, shape.cols);
  const double fill =
      shape.rows * shape.cols * shape.count * time.split / (time.blocks * time.tile->rows * time.tile->cols);
  const double span = std::min(wide, rates.multiprocessors * 128) * shape.depth * shape.bytes_per_number;
  c.features = {rough_log2(time.blocks / rates.multiprocessors),
                rough_log2(time.depth),
                rough_log2(c.memory_s / c.arithmetic_s),
                rough_log2(fill),
                rough_log2(bytes / rates.l2_bytes),
                kNoSpan,
                rough_log2(span / (1 << 24))};
}

Candidates candidates_of(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters) {
  Candidates out;
  if (is_convolution(kernel.kind))
    add_convolutions(kernel, chip, parameters, out);
  else if (is_product(kernel.kind))
    add_products(kernel, chip, parameters, out);
  else
    add_streaming(kernel, chip, parameters, out);
  return out;
}

}  // namespace ganymede::calibration
