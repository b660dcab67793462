#pragma once
// One step of GAN training (Goodfellow et al. 2014), for every model and every backend.

#include <functional>

#include "kernel/gan.hpp"
#include "kernel/parallel/reducer.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {

/// What the two players minimise.
enum class AdversarialLoss {
  non_saturating,  ///< cross-entropy; the generator maximises log D(G(z))
  minimax,         ///< cross-entropy; the generator minimises log(1 - D(G(z))), which saturates while D wins
  hinge,           ///< Lim and Ye 2017
  wasserstein,     ///< with gradient penalty (Gulrajani et al. 2017); for discriminators without batch norm
};
inline constexpr std::string_view kLossNames[] = {"non-saturating", "minimax", "hinge", "wgan-gp"};

struct StepOptions {
  AdversarialLoss loss = AdversarialLoss::non_saturating;
  int discriminator_steps = 1;  ///< updates of the discriminator a step, each on a batch of its own
  AdamParameters adam;
  float penalty = 10;  ///< weight of the gradient penalty, as its authors set it
  /// Of the generator's parameters, by which samples are drawn; 0: none. In the first updates less counts, so that the
  /// initial weights are soon forgotten: (1 + t) / (10 + t), as TensorFlow's ExponentialMovingAverage has it.
  float average_decay = 0;
};

/// What averages the gradients of several processes; null for one.
struct Reducers {
  Reducer* generator = nullptr;
  Reducer* discriminator = nullptr;
};

/// Puts the next batch of real images into gan.real.
using LoadReal = std::function<void()>;

/// The discriminator's updates on real images and as many fakes, then the generator's. The fakes of the last
/// discriminator update serve the generator's too.
Losses gan_step(Gan& gan, Ops& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                const LoadReal& load_real, Reducers reducers = {});

}  // namespace ganymede::kernel
