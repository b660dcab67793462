#pragma once
// Losses on the CPU, in double precision: a batch of logits is little beside a step.

#include <cstdint>
#include <span>

#include "kernel/ops.hpp"

namespace ganymede::kernel {

// As the operations of Ops with these names.
void cpu_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term);
void cpu_classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> labels);

}  // namespace ganymede::kernel
