#pragma once
// The loss of one logit and its derivative (see LossTerm), for host and device.

#include "kernel/device_code.hpp"
#include "kernel/ops/op_parameters.hpp"

namespace ganymede::kernel {

template <class Real>
struct LossOfLogit {
  Real value, slope;  ///< the loss, and its derivative with respect to the logit
};

/// The loss `term` of logit `l`, and its derivative.
template <class Real>
GANYMEDE_DEVICE LossOfLogit<Real> loss_of_logit(Real l, LossTerm term) {
  // softplus: log(1 + exp(l)) = max(l, 0) + log(1 + exp(-|l|)), whose exponential never overflows.
  const Real decay = std::exp(-std::abs(l)), softplus = (l > 0 ? l : 0) + std::log1p(decay);
  const Real sigmoid = l >= 0 ? 1 / (1 + decay) : decay / (1 + decay);
  switch (term) {
    case LossTerm::cross_entropy_real:
      return {softplus - l, sigmoid - 1};
    case LossTerm::cross_entropy_fake:
      return {softplus, sigmoid};
    case LossTerm::log_probability_fake:
      return {-softplus, -sigmoid};
    case LossTerm::hinge_real:
      return l < 1 ? LossOfLogit<Real>{1 - l, -1} : LossOfLogit<Real>{0, 0};
    case LossTerm::hinge_fake:
      return l > -1 ? LossOfLogit<Real>{1 + l, 1} : LossOfLogit<Real>{0, 0};
    case LossTerm::negative_logit:
      return {-l, -1};
    case LossTerm::square_real:
      return {(l - 1) * (l - 1) / 2, l - 1};
    case LossTerm::square_fake:
      return {l * l / 2, l};
    case LossTerm::whole_square_real:
      return {(l - 1) * (l - 1), 2 * (l - 1)};
    case LossTerm::logit:
      break;
  }
  return {l, 1};
}

}  // namespace ganymede::kernel
