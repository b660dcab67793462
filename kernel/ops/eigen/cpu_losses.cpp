#include "kernel/ops/eigen/cpu_losses.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/loss_terms.hpp"

namespace ganymede::kernel {

void cpu_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) {
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    const auto [value, slope] = loss_of_logit(double{logits.floats()[i]}, term);
    sum += value;
    d_logits.floats()[i] = static_cast<float>(slope / logits.batch);
  }
  *loss = static_cast<float>(sum / logits.batch);
}

void cpu_classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> labels) {
  const auto stride = std::ptrdiff_t{logits.batch};
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    double largest = double{logits.floats()[i]}, all = 0;
    for (int c = 1; c < logits.features; ++c) largest = std::max(largest, double{logits.floats()[c * stride + i]});
    for (int c = 0; c < logits.features; ++c) all += std::exp(double{logits.floats()[c * stride + i]} - largest);
    const int label = labels[static_cast<std::size_t>(i)];
    sum += largest + std::log(all) - double{logits.floats()[label * stride + i]};
    for (int c = 0; c < logits.features; ++c) {
      const double p = std::exp(double{logits.floats()[c * stride + i]} - largest) / all;
      d_logits.floats()[c * stride + i] = static_cast<float>((p - (c == label ? 1 : 0)) / logits.batch);
    }
  }
  *loss = static_cast<float>(sum / logits.batch);
}

}  // namespace ganymede::kernel
