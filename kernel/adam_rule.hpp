#pragma once
// The numbers of one Adam update, which host and device code share.

namespace ganymede::kernel {

/// One step of Adam (Kingma and Ba 2015) with its bias corrections:
/// first = beta1 first + (1 - beta1) g, second = beta2 second + (1 - beta2) g^2,
/// parameter -= rate first / (sqrt(second) inverse_root + epsilon).
struct AdamRule {
  float rate;  ///< learning rate / (1 - beta1^t), t being the number of this update, from 1
  float beta1, beta2;
  float inverse_root;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
};

}  // namespace ganymede::kernel
