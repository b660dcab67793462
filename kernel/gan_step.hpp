#pragma once
// One step of GAN training (Goodfellow et al. 2014), for every model and every backend.

#include <functional>

#include "kernel/gan.hpp"
#include "kernel/parallel/bucket_reducer.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {

/// The losses that discriminator and generator minimise.
enum class AdversarialLoss {
  non_saturating,  ///< cross-entropy; the generator maximises log D(G(z))
  minimax,  ///< cross-entropy; the generator minimises log(1 - D(G(z))), which saturates while the discriminator wins
  hinge,    ///< Lim and Ye 2017
  wasserstein,    ///< with gradient penalty (Gulrajani et al. 2017), whose authors use no batch norm in the critic
  r1,             ///< non-saturating, with a penalty of the gradient at real images (Mescheder et al. 2018)
  least_squares,  ///< Mao et al. 2017; the generator's without their factor 1/2, as in Zhu et al. 2017
};
/// The names that --loss takes, in the order of AdversarialLoss.
inline constexpr std::string_view kLossNames[] = {"non-saturating", "minimax", "hinge",
                                                  "wgan-gp",        "r1",      "least-squares"};
/// Whether a loss has a penalty of the discriminator's gradient by the images.
constexpr bool has_penalty(AdversarialLoss loss) {
  return loss == AdversarialLoss::wasserstein || loss == AdversarialLoss::r1;
}

struct StepOptions {
  AdversarialLoss loss = AdversarialLoss::non_saturating;
  int discriminator_steps = 1;  ///< updates of the discriminator in a step, each on a batch of its own
  AdamParameters adam;
  float penalty = 10;  ///< weight of the gradient penalty, of R1 twice its weight; 10 is the value of both's authors
  /// Decay of the moving average of the generator's parameters, with which samples are drawn; 0: no average. At update
  /// t it is at most (1 + t) / (10 + t), as in TensorFlow's ExponentialMovingAverage, so that the initial weights are
  /// forgotten soon.
  float average_decay = 0;
};

/// Average the gradients of the two networks over the processes; null: there is one process.
struct Reducers {
  BucketReducer* generator = nullptr;
  BucketReducer* discriminator = nullptr;
};

/// Loads the next batch of real images into gan.real.
using LoadReal = std::function<void()>;

/// Begins the step on the timeline, which is told if it has regularisation that not every step has.
void begin_step(const Gan& gan, TensorOps& ops, const StepOptions& options);
/// One step of the model's kind (Gan::step). Adversarial: the discriminator's updates, each on a batch of real and one
/// of fake images, then the generator's update, which uses the fake images of the last discriminator update. Cyclic:
/// the generators' update, then that of the discriminators on the same fake images. Does not wait for the losses.
void begin_gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                    const LoadReal& load_real, Reducers reducers = {});
/// The losses of the first step that has begun and whose losses were not taken yet; at most kStepsAhead have begun.
Losses take_losses(TensorOps& ops);
/// Moves the average of the path length that later steps aim at. A step with path length regularisation must not begin
/// before the losses of the one before have come here, which is so because there is a step between them whose losses
/// were taken.
void average_path_length(Gan& gan, const Losses& losses);
/// begin_gan_step(), take_losses() and average_path_length(), one after the other.
Losses gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                const LoadReal& load_real, Reducers reducers = {});

}  // namespace ganymede::kernel
