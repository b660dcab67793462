#include "kernel/ops/eigen/cpu_losses.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ganymede::kernel {
namespace {

/// Of one logit: the loss and its derivative.
std::pair<double, double> loss_of(double l, LossTerm term) {
  // log(1 + exp(l)) = max(l, 0) + log(1 + exp(-|l|)), which overflows for no l.
  const double decay = std::exp(-std::abs(l)), softplus = std::max(l, 0.0) + std::log1p(decay);
  const double sigmoid = l >= 0 ? 1 / (1 + decay) : decay / (1 + decay);
  switch (term) {
    case LossTerm::cross_entropy_up:
      return {softplus - l, sigmoid - 1};
    case LossTerm::cross_entropy_down:
      return {softplus, sigmoid};
    case LossTerm::log_probability_fake:
      return {-softplus, -sigmoid};
    case LossTerm::hinge_up:
      return {std::max(0.0, 1 - l), l < 1 ? -1 : 0};
    case LossTerm::hinge_down:
      return {std::max(0.0, 1 + l), l > -1 ? 1 : 0};
    case LossTerm::logit_up:
      return {-l, -1};
    case LossTerm::logit_down:
      return {l, 1};
  }
  return {};
}

}  // namespace

void cpu_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) {
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    const auto [value, slope] = loss_of(double{logits.data[i]}, term);
    sum += value;
    d_logits.data[i] = static_cast<float>(slope / logits.batch);
  }
  *loss = static_cast<float>(sum / logits.batch);
}

void cpu_classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> labels) {
  const auto stride = std::ptrdiff_t{logits.batch};
  double sum = 0;
  for (int i = 0; i < logits.batch; ++i) {
    double most = double{logits.data[i]}, all = 0;
    for (int c = 1; c < logits.features; ++c) most = std::max(most, double{logits.data[c * stride + i]});
    for (int c = 0; c < logits.features; ++c) all += std::exp(double{logits.data[c * stride + i]} - most);
    const int label = labels[static_cast<std::size_t>(i)];
    sum += most + std::log(all) - double{logits.data[label * stride + i]};
    for (int c = 0; c < logits.features; ++c) {
      const double p = std::exp(double{logits.data[c * stride + i]} - most) / all;
      d_logits.data[c * stride + i] = static_cast<float>((p - (c == label ? 1 : 0)) / logits.batch);
    }
  }
  *loss = static_cast<float>(sum / logits.batch);
}

}  // namespace ganymede::kernel
