#pragma once
// Losses on the CPU. They are computed in double precision, because a batch of logits costs little.

#include <cstdint>
#include <span>

#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

// Arguments as in TensorOps.
void cpu_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term);
void cpu_classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> labels);

}  // namespace ganymede::kernel
