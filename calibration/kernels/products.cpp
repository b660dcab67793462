#include <algorithm>

#include "calibration/kernels/candidates.hpp"

namespace ganymede::calibration {
void add_products(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out) {
  const bool tensor = on_tensor_cores(chip, kernel.precision);
  const bool plain = !tensor;
  const bool along_depth = kernel.transposed_b && !kernel.transposed_a;
  const bool batched = kernel.kind == KernelKind::kBatchedProduct;
  const ChipRates rates = rates_of(chip, plain ? KernelPrecision::kFp32 : kernel.precision);
  const ProductShape shape{static_cast<double>(kernel.m),
                           static_cast<double>(kernel.n),
                           static_cast<double>(kernel.k),
                           static_cast<double>(kernel.batch),
                           static_cast<double>(bytes_per_number(kernel.precision)),
                           !batched};
  const BlockTime time =
      batched && plain
          ? block_time(parameters, rates, batched_tile(chip.sheet.capability, rates, shape), shape, 1)
          : fastest_tile(parameters, rates, plain ? product_tiles(chip.sheet.capability, along_depth) : tensor_tiles(),
                         shape);
  Candidate& c = out.add();
  c.group = !plain ? Group::kTensorProduct : batched ? Group::kBatchedProduct : Group::kProduct;
  c.algorithm = time.split > 1 ? "split-product" : "product";
  fill_from_blocks(c, time, rates, parameters, shape, time.bytes, time.split > 1 ? 2 : 1);
  // Rows that are far apart in memory cost address translations; what they cost the older chips more has a feature of
  // its own, so that an older chip without measurements has at least what the others tell.
  double& span = c.features[static_cast<std::size_t>(Feature::kSpan)];
  if (!along_depth) span = kNoSpan;
  if (chip.sheet.capability < 70) c.features[static_cast<std::size_t>(Feature::kOlderSpan)] = span;
  c.least_bytes = operand_bytes(kernel);
  c.power_flops = plain ? c.flops : 0;
}

}  // namespace ganymede::calibration
