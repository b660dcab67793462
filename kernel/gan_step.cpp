#include "kernel/gan_step.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

struct Terms {
  LossTerm real, fake, generator;
};

Terms terms_of(AdversarialLoss loss) {
  switch (loss) {
    case AdversarialLoss::minimax:
      return {LossTerm::cross_entropy_up, LossTerm::cross_entropy_down, LossTerm::log_probability_fake};
    case AdversarialLoss::hinge:
      return {LossTerm::hinge_up, LossTerm::hinge_down, LossTerm::logit_up};
    case AdversarialLoss::wasserstein:
      return {LossTerm::logit_up, LossTerm::logit_down, LossTerm::logit_up};
    case AdversarialLoss::non_saturating:
      break;
  }
  return {LossTerm::cross_entropy_up, LossTerm::cross_entropy_down, LossTerm::cross_entropy_up};
}

// The discriminator sees two batches an update: the second adds its gradients to the first's. Nobody asks for those of
// the images.
constexpr Want kFirstHalf{.weights = true, .accumulate = false, .input = false};
constexpr Want kMore{.weights = true, .accumulate = true, .input = false};
// In the generator's update the discriminator is frozen: gradients pass through it and none stay.
constexpr Want kThrough{.weights = false, .accumulate = false, .input = true};
constexpr Want kWhole{.weights = true, .accumulate = false, .input = false};

using LayerDone = std::function<void(std::size_t)>;
constexpr auto kNobodyWaits = [](std::size_t) {};

Tensor latent(Gan& gan, Ops& ops, RandomStream& random) {
  ops.fill_normal(gan.latent, random);
  return gan.latent;
}

/// The gradient of the loss with respect to the logits.
Tensor judge(Gan& gan, Ops& ops, Tensor logits, LossTerm term, LossSlot slot) {
  ops.adversarial_loss(gan.losses + slot, gan.d_logits, logits, term);
  return gan.d_logits;
}

Losses read_losses(const Gan& gan, Ops& ops) {
  float values[kLossSlots];
  ops.read(values, gan.losses);
  return {double{values[kLossReal]} + double{values[kLossFake]} + double{values[kLossPenalty]},
          double{values[kLossGenerator]}};
}

/// Adds the gradient penalty's share to the discriminator's gradients.
///
/// With S the sum of the logits of images between the real and the fake, and g_i its gradient with respect to image i,
/// the penalty is P = weight * mean of (|g_i| - 1)^2. Its gradient with respect to the weights is that of sum u_i . g_i
/// with u_i = 2 weight / batch (|g_i| - 1) g_i / |g_i| held fast: of the logits' tangent along u. So no second
/// derivatives of layers are multiplied out: a forward pass, back to the images, the tangent, and back through both.
void penalize_gradient(Gan& gan, Ops& ops, Tensor fake, StepRandom& random, float weight, const LayerDone& layer_done) {
  Network& discriminator = gan.discriminator;
  ops.interpolate(gan.between, gan.real, fake, random.latent);
  forward(discriminator, ops, gan.between, random.dropout);
  ops.fill(gan.d_logits, 1);
  const Tensor gradient = backward(discriminator, ops, gan.d_logits, kThrough, kNobodyWaits);
  ops.gradient_penalty(gan.losses + kLossPenalty, gan.direction, gradient, weight);
  discriminator.tangent(ops, gan.direction);
  ops.fill(gan.d_logits, 1);
  discriminator.tangent_backward(ops, gan.d_logits, layer_done);
}

}  // namespace

Losses gan_step(Gan& gan, Ops& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                const LoadReal& load_real, Reducers reducers) {
  Network& generator = gan.generator;
  Network& discriminator = gan.discriminator;
  const Terms terms = terms_of(options.loss);
  Tensor logits, fake;

  for (int update_number = 0; update_number < options.discriminator_steps; ++update_number) {
    clock.begin_update(update_number);
    load_real();
    clock.enter(Phase::discriminator_forward_real);
    logits = forward(discriminator, ops, gan.real, random.dropout);
    clock.enter(Phase::discriminator_backward_real);
    backward(discriminator, ops, judge(gan, ops, logits, terms.real, kLossReal), kFirstHalf, kNobodyWaits);

    // The generator only supplies these images; their gradients are not asked for, so it learns nothing from them.
    clock.enter(Phase::generator_forward);
    fake = forward(generator, ops, latent(gan, ops, random.latent), random.dropout);
    clock.enter(Phase::discriminator_forward_fake);
    logits = forward(discriminator, ops, fake, random.dropout);
    clock.enter(Phase::discriminator_backward_fake);
    const auto done = [&](std::size_t layer) {
      clock.discriminator_layer_done(layer);
      if (reducers.discriminator != nullptr) reducers.discriminator->layer_done(layer);
    };
    const bool last = options.loss != AdversarialLoss::wasserstein;
    backward(discriminator, ops, judge(gan, ops, logits, terms.fake, kLossFake), kMore,
             last ? LayerDone(done) : LayerDone(kNobodyWaits));
    if (!last) {
      clock.enter(Phase::discriminator_gradient_penalty);
      penalize_gradient(gan, ops, fake, random, options.penalty, done);
    }
    if (reducers.discriminator != nullptr) reducers.discriminator->wait();
    clock.enter(Phase::discriminator_update);
    update(discriminator, ops, options.adam);
  }

  // The same fakes again, before the discriminator that has just learned from them.
  clock.begin_update(0);
  clock.enter(Phase::generator_forward_through_discriminator);
  logits = forward(discriminator, ops, fake, random.dropout);
  clock.enter(Phase::generator_backward_through_discriminator);
  const Tensor d_fake =
      backward(discriminator, ops, judge(gan, ops, logits, terms.generator, kLossGenerator), kThrough, kNobodyWaits);
  clock.enter(Phase::generator_backward);
  backward(generator, ops, d_fake, kWhole, [&](std::size_t layer) {
    clock.generator_layer_done(layer);
    if (reducers.generator != nullptr) reducers.generator->layer_done(layer);
  });
  if (reducers.generator != nullptr) reducers.generator->wait();
  clock.enter(Phase::generator_update);
  update(generator, ops, options.adam);
  if (gan.has_average()) {
    const auto t = static_cast<float>(generator.updates());
    const float decay = std::min(options.average_decay, (1 + t) / (10 + t));
    ops.average(gan.average.floats(), generator.parameter_data(), generator.parameter_count(), decay);
  }

  return read_losses(gan, ops);
}

}  // namespace ganymede::kernel
