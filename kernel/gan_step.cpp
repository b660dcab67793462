#include "kernel/gan_step.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

/// The loss terms of real images, of fake ones, and of fake ones in the generator's update.
struct Terms {
  LossTerm real, fake, generator;
};

Terms terms_of(AdversarialLoss loss) {
  switch (loss) {
    case AdversarialLoss::minimax:
      return {LossTerm::cross_entropy_real, LossTerm::cross_entropy_fake, LossTerm::log_probability_fake};
    case AdversarialLoss::hinge:
      return {LossTerm::hinge_real, LossTerm::hinge_fake, LossTerm::negative_logit};
    case AdversarialLoss::wasserstein:
      return {LossTerm::negative_logit, LossTerm::logit, LossTerm::negative_logit};
    case AdversarialLoss::non_saturating:
    case AdversarialLoss::r1:
      break;
  }
  return {LossTerm::cross_entropy_real, LossTerm::cross_entropy_fake, LossTerm::cross_entropy_real};
}

// An update of the discriminator sees two batches; the gradients of the second are added to those of the first. The
// gradients of the images are not needed.
constexpr GradientRequest kFirstBatch{.weights = true, .accumulate = false, .input = false};
constexpr GradientRequest kSecondBatch{.weights = true, .accumulate = true, .input = false};
// Gradients pass through the discriminator without changing it: to the generator, and for the gradient penalty.
constexpr GradientRequest kFrozen{.weights = false, .accumulate = false, .input = true};
constexpr GradientRequest kGeneratorUpdate{.weights = true, .accumulate = false, .input = false};

/// Deviation of a pixel around an autoencoder's image, where black is -1 and white 1.
constexpr float kPixelDeviation = 0.5F;

using LayerDone = std::function<void(std::size_t)>;
/// For backward passes whose gradients are not final yet or not needed.
constexpr auto kNoReduction = [](std::size_t) {};

Tensor latent(Gan& gan, TensorOps& ops, RandomStream& random) {
  ops.fill_normal(gan.latent, random);
  return gan.latent;
}

/// Writes the loss into its slot; returns its gradient with respect to the logits, [1 x batch].
Tensor adversarial_gradient(Gan& gan, TensorOps& ops, Tensor logits, LossTerm term, LossSlot slot) {
  ops.adversarial_loss(gan.losses + slot, gan.d_logits, logits, term);
  return gan.d_logits;
}

/// Adds the gradient of the gradient penalty (Gulrajani et al. 2017), or of R1 (Mescheder et al. 2018), to the
/// discriminator's gradients.
///
/// Let S be the sum of the logits of images interpolated between real and fake ones, for R1 of the real ones, and g_i
/// its gradient with respect to image i. The penalty is P = weight * mean of (|g_i| - c)^2, where c is 1, for R1 0. Its
/// gradient with respect to the weights equals that of sum u_i . g_i with u_i = 2 weight / batch (|g_i| - c) g_i /
/// |g_i| held constant, and this sum is the tangent of the logits along u. So the second derivatives are never formed:
/// a forward pass, a backward pass to the images, the tangent, and a backward pass through both.
void add_penalty_gradient(Gan& gan, TensorOps& ops, Tensor fake, StepRandom& random, const StepOptions& options,
                          const LayerDone& layer_done) {
  Network& discriminator = gan.discriminator;
  const bool at_real = options.loss == AdversarialLoss::r1;
  if (!at_real) ops.interpolate(gan.between, gan.real, fake, random.latent);
  forward(discriminator, ops, at_real ? gan.real : gan.between, random.dropout);
  ops.fill(gan.d_logits, 1);
  const Tensor gradient = backward(discriminator, ops, gan.d_logits, kFrozen, kNoReduction);
  ops.gradient_penalty(gan.losses + kLossPenalty, gan.direction, gradient,
                       at_real ? options.penalty / 2 : options.penalty, at_real ? 0.0F : 1.0F);
  discriminator.tangent(ops, gan.direction);
  ops.fill(gan.d_logits, 1);
  discriminator.tangent_backward(ops, gan.d_logits, layer_done);
}

void update_average(Gan& gan, TensorOps& ops, float decay_max) {
  if (!gan.has_average()) return;
  const auto t = static_cast<float>(gan.generator.updates());
  const float decay = std::min(decay_max, (1 + t) / (10 + t));
  ops.average(gan.average.floats(), gan.generator.parameter_data(), gan.generator.parameter_floats(), decay);
}

/// Tells clock and reducer that a layer's gradients are final.
LayerDone discriminator_done(StepClock& clock, Reducers reducers) {
  return [&clock, reducer = reducers.discriminator](std::size_t layer) {
    clock.discriminator_layer_done(layer);
    if (reducer != nullptr) reducer->layer_done(layer);
  };
}
LayerDone generator_done(StepClock& clock, Reducers reducers) {
  return [&clock, reducer = reducers.generator](std::size_t layer) {
    clock.generator_layer_done(layer);
    if (reducer != nullptr) reducer->layer_done(layer);
  };
}

void begin_adversarial_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                            const LoadReal& load_real, Reducers reducers) {
  Network& generator = gan.generator;
  Network& discriminator = gan.discriminator;
  const Terms terms = terms_of(options.loss);
  Tensor logits, fake;

  for (int update_number = 0; update_number < options.discriminator_steps; ++update_number) {
    clock.begin_update(update_number);
    load_real();
    clock.begin_phase(Phase::discriminator_forward_real);
    logits = forward(discriminator, ops, gan.real, random.dropout);
    clock.begin_phase(Phase::discriminator_backward_real);
    backward(discriminator, ops, adversarial_gradient(gan, ops, logits, terms.real, kLossReal), kFirstBatch,
             kNoReduction);

    // The generator only supplies these images: no gradient flows back into it.
    clock.begin_phase(Phase::generator_forward);
    fake = forward(generator, ops, latent(gan, ops, random.latent), random.dropout);
    clock.begin_phase(Phase::discriminator_forward_fake);
    logits = forward(discriminator, ops, fake, random.dropout);
    clock.begin_phase(Phase::discriminator_backward_fake);
    const LayerDone done = discriminator_done(clock, reducers);
    const bool penalized = has_penalty(options.loss);
    backward(discriminator, ops, adversarial_gradient(gan, ops, logits, terms.fake, kLossFake), kSecondBatch,
             penalized ? LayerDone(kNoReduction) : done);
    if (penalized) {
      clock.begin_phase(Phase::discriminator_gradient_penalty);
      add_penalty_gradient(gan, ops, fake, random, options, done);
    }
    if (reducers.discriminator != nullptr) reducers.discriminator->wait();
    clock.begin_phase(Phase::discriminator_update);
    update(discriminator, ops, options.adam);
  }

  // The discriminator that has just been updated judges the same fake images.
  clock.begin_update(0);
  clock.begin_phase(Phase::generator_forward_through_discriminator);
  logits = forward(discriminator, ops, fake, random.dropout);
  clock.begin_phase(Phase::generator_backward_through_discriminator);
  const Tensor d_fake =
      backward(discriminator, ops, adversarial_gradient(gan, ops, logits, terms.generator, kLossGenerator), kFrozen,
               kNoReduction);
  clock.begin_phase(Phase::generator_backward);
  backward(generator, ops, d_fake, kGeneratorUpdate, generator_done(clock, reducers));
  if (reducers.generator != nullptr) reducers.generator->wait();
  clock.begin_phase(Phase::generator_update);
  update(generator, ops, options.adam);
}

/// Kingma and Welling 2014: the loss is the divergence of the code's distribution from the standard normal one, and the
/// reconstruction's -log p, up to a constant, if pixels are normal around the decoder's with kPixelDeviation.
void begin_variational_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                            const LoadReal& load_real, Reducers reducers) {
  Network &encoder = gan.discriminator, &decoder = gan.generator;
  clock.begin_update(0);
  load_real();
  clock.begin_phase(Phase::encoder_forward);
  const Tensor code = forward(encoder, ops, gan.real, random.dropout);
  clock.begin_phase(Phase::decoder_forward);
  ops.fill_normal(gan.noise, random.latent);
  ops.sample_code(gan.latent, code, gan.noise);
  const Tensor images = forward(decoder, ops, gan.latent, random.dropout);
  clock.begin_phase(Phase::decoder_backward);
  ops.squared_error(gan.losses + kLossGenerator, gan.direction, images, gan.real,
                    0.5F / (kPixelDeviation * kPixelDeviation));
  const Tensor d_latent = backward(decoder, ops, gan.direction, {}, generator_done(clock, reducers));
  clock.begin_phase(Phase::encoder_backward);
  ops.sample_code_backward(gan.losses + kLossFake, gan.d_code, d_latent, code, gan.noise);
  if (reducers.generator != nullptr) reducers.generator->wait();  // processes exchange one network at a time
  backward(encoder, ops, gan.d_code, kFirstBatch, discriminator_done(clock, reducers));
  clock.begin_phase(Phase::decoder_update);
  update(decoder, ops, options.adam);
  if (reducers.discriminator != nullptr) reducers.discriminator->wait();
  clock.begin_phase(Phase::encoder_update);
  update(encoder, ops, options.adam);
}

}  // namespace

void begin_gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                    const LoadReal& load_real, Reducers reducers) {
  (gan.step == StepKind::variational ? begin_variational_step : begin_adversarial_step)(gan, ops, random, options,
                                                                                        clock, load_real, reducers);
  update_average(gan, ops, options.average_decay);
  ops.end_step(gan.losses, kLossSlots);
}

Losses take_losses(TensorOps& ops) {
  float values[kLossSlots];
  ops.take(values);
  return {double{values[kLossReal]} + double{values[kLossFake]} + double{values[kLossPenalty]},
          double{values[kLossGenerator]}};
}

Losses gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                const LoadReal& load_real, Reducers reducers) {
  begin_gan_step(gan, ops, random, options, clock, load_real, reducers);
  return take_losses(ops);
}

}  // namespace ganymede::kernel
