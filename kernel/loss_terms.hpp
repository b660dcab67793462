#pragma once
// What a logit costs, for host and device.

#include <cmath>

#include "kernel/ops.hpp"
#include "kernel/ops/cuda/portable.hpp"

namespace ganymede::kernel {

template <class Real>
struct LossOfLogit {
  Real value, slope;  ///< the loss and its derivative
};

template <class Real>
GANYMEDE_DEVICE LossOfLogit<Real> loss_of_logit(Real l, LossTerm term) {
  // log(1 + exp(l)) = max(l, 0) + log(1 + exp(-|l|)), which overflows for no l.
  const Real decay = std::exp(-std::abs(l)), softplus = (l > 0 ? l : 0) + std::log1p(decay);
  const Real sigmoid = l >= 0 ? 1 / (1 + decay) : decay / (1 + decay);
  switch (term) {
    case LossTerm::cross_entropy_up:
      return {softplus - l, sigmoid - 1};
    case LossTerm::cross_entropy_down:
      return {softplus, sigmoid};
    case LossTerm::log_probability_fake:
      return {-softplus, -sigmoid};
    case LossTerm::hinge_up:
      return l < 1 ? LossOfLogit<Real>{1 - l, -1} : LossOfLogit<Real>{0, 0};
    case LossTerm::hinge_down:
      return l > -1 ? LossOfLogit<Real>{1 + l, 1} : LossOfLogit<Real>{0, 0};
    case LossTerm::logit_up:
      return {-l, -1};
    case LossTerm::logit_down:
      break;
  }
  return {l, 1};
}

}  // namespace ganymede::kernel
