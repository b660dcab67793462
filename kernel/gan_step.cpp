#include "kernel/gan_step.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

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
    case AdversarialLoss::least_squares:
      return {LossTerm::square_real, LossTerm::square_fake, LossTerm::whole_square_real};
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

/// Weight of the cycles' error, a mean over the values of an image, beside the adversarial loss (Zhu et al. 2017).
constexpr float kCycleWeight = 10;

/// Weight of the mean absolute error of restored images (Isola et al. 2017, whose inputs are images too).
constexpr float kContentWeight = 100;

/// Deviation of a pixel around an autoencoder's image, where black is -1 and white 1.
constexpr float kPixelDeviation = 0.5F;

// The weight that its authors give path length regularisation, and a new length's share in the average.
constexpr float kPathWeight = 2;
constexpr double kPathShare = 0.01;

using LayerDone = std::function<void(std::size_t)>;
/// For backward passes whose gradients are not final yet or not needed.
constexpr auto kNoReduction = [](std::size_t) {};

/// The generator's input: random numbers, or the real images reduced.
Tensor latent(Gan& gan, TensorOps& ops, RandomStream& random) {
  if (gan.reduction > 1)
    ops.pool(gan.latent, gan.real, gan.reduced(), 1.0F / static_cast<float>(gan.reduced().elements()));
  else
    ops.fill_normal(gan.latent, random);
  return gan.latent;
}

/// Writes the loss, a mean over all logits, into its slot; returns its gradient with respect to them.
Tensor adversarial_gradient(Gan& gan, TensorOps& ops, Tensor logits, LossTerm term, LossSlot slot) {
  const auto in_a_row = [](Tensor x) { return Tensor{x.data, 1, x.features * x.batch}; };
  ops.adversarial_loss(gan.losses + slot, in_a_row(gan.d_logits), in_a_row(logits), term);
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
                       (at_real ? options.penalty / 2 : options.penalty) * static_cast<float>(gan.lazy.penalty_every),
                       at_real ? 0.0F : 1.0F);
  discriminator.tangent(ops, gan.direction);
  ops.fill(gan.d_logits, 1);
  discriminator.tangent_backward(ops, gan.d_logits, layer_done);
}

/// A loss that this step does not have is 0.
void leave_out(Gan& gan, TensorOps& ops, LossSlot slot) { ops.copy(gan.losses + slot, gan.losses + kNothing, 1); }

// Whether this step has the gradient penalty, and whether it has the path length regularisation.
bool penalty_is_due(const Gan& gan, const StepOptions& options) {
  return has_penalty(options.loss) && gan.generator.updates() % gan.lazy.penalty_every == 0;
}
bool path_is_due(const Gan& gan) {
  return gan.lazy.path_every > 0 && gan.generator.updates() % gan.lazy.path_every == 0;
}

/// Adds the gradient of the path length regularisation (Karras et al. 2020) to the generator's, if it is due. For the
/// last forward pass, an image g(w) and a random image y, v = J^T y is the gradient of y . g by the style vector w. The
/// penalty is weight * mean of (|v| - a)^2, where a is the average of |v| so far. As above its gradient is that of the
/// sum of u . v with u held constant, which is y . (J u): the tangent of the image along u.
void regularize_path_length(Gan& gan, TensorOps& ops, StepRandom& random, StepClock& clock,
                            const LayerDone& layer_done) {
  if (gan.lazy.path_every == 0) return;
  clock.begin_phase(Phase::generator_path_length);
  if (!path_is_due(gan)) {
    for (const LossSlot slot : {kLossPath, kPathLength}) leave_out(gan, ops, slot);
    return;
  }
  Network& generator = gan.generator;
  const auto positions = static_cast<float>(gan.image.height * gan.image.width);
  ops.fill_normal(gan.direction, random.latent);
  ops.combine(gan.direction, 1 / std::sqrt(positions), gan.direction, 0);
  const Tensor y = gan.direction;
  const Tensor v = backward(generator, ops, y, kFrozen, kNoReduction, 0, {.first = gan.lazy.styles});
  ops.gradient_penalty(gan.losses + kLossPath, gan.style_direction, v,
                       kPathWeight * static_cast<float>(gan.lazy.path_every), static_cast<float>(gan.path_length),
                       gan.losses + kPathLength);
  generator.tangent(ops, gan.style_direction, gan.lazy.styles);
  const Adjoints d = generator.tangent_backward(ops, y, layer_done, gan.lazy.styles);
  // The direction does not depend on the layers before.
  backward(generator, ops, d.value, kSecondBatch, layer_done, 0, {.end = gan.lazy.styles});
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
    const bool penalized = penalty_is_due(gan, options);
    backward(discriminator, ops, adversarial_gradient(gan, ops, logits, terms.fake, kLossFake), kSecondBatch,
             penalized ? LayerDone(kNoReduction) : done);
    if (has_penalty(options.loss)) {
      clock.begin_phase(Phase::discriminator_gradient_penalty);
      if (penalized)
        add_penalty_gradient(gan, ops, fake, random, options, done);
      else
        leave_out(gan, ops, kLossPenalty);
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
  if (gan.reduction > 1) {
    ops.absolute_error(gan.losses + kLossCycle, gan.direction, fake, gan.real,
                       kContentWeight / static_cast<float>(gan.image.pixels()));
    ops.combine(d_fake, 1, gan.direction, 1);
  }
  const LayerDone done = generator_done(clock, reducers);
  backward(generator, ops, d_fake, kGeneratorUpdate, path_is_due(gan) ? LayerDone(kNoReduction) : done);
  regularize_path_length(gan, ops, random, clock, done);
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

/// Adds the gradients of one cycle: images of a domain, translated by `chain`, must fool its discriminator, and the
/// generator's other chain must give the images back.
void add_cycle(Gan& gan, TensorOps& ops, StepRandom& random, const Terms& terms, StepClock& clock, std::size_t chain,
               bool accumulate, const LayerDone& layer_done) {
  const std::size_t back = 1 - chain;
  const Tensor fake = gan.fake[chain];
  clock.begin_phase(chain == 1 ? Phase::cycle_b_forward : Phase::cycle_a_forward);
  ops.copy(fake, forward(gan.generator, ops, gan.domain(chain), random.dropout, chain));
  const Tensor again = forward(gan.generator, ops, fake, random.dropout, back);
  ops.absolute_error(gan.losses + (chain == 0 ? kLossCycle : kLossOtherCycle), gan.direction, again, gan.domain(chain),
                     kCycleWeight / static_cast<float>(gan.image.pixels()));
  clock.begin_phase(chain == 1 ? Phase::cycle_b_judge : Phase::cycle_a_judge);
  const Tensor logits = forward(gan.discriminator, ops, fake, random.dropout, chain);
  const Tensor d_logits =
      adversarial_gradient(gan, ops, logits, terms.generator, chain == 0 ? kLossGenerator : kLossOtherGenerator);
  ops.copy(gan.d_fake, backward(gan.discriminator, ops, d_logits, kFrozen, kNoReduction, chain));
  clock.begin_phase(chain == 1 ? Phase::cycle_b_backward : Phase::cycle_a_backward);
  const GradientRequest through{.weights = true, .accumulate = accumulate, .input = true};
  ops.combine(gan.d_fake, 1, backward(gan.generator, ops, gan.direction, through, layer_done, back), 1);
  const GradientRequest last{.weights = true, .accumulate = accumulate, .input = false};
  backward(gan.generator, ops, gan.d_fake, last, layer_done, chain);
}

/// CycleGAN (Zhu et al. 2017). Within a cycle each chain of the generator passes once forward and once back, so that
/// the activations of one pass suffice. The cycle from the second domain is the first, and in each phase the second
/// chain comes first, so that gradients become final from the last layer on, which is the order of the buckets.
void begin_cyclic_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                       const LoadReal& load_real, Reducers reducers) {
  Network& discriminator = gan.discriminator;
  const Terms terms = terms_of(options.loss);
  clock.begin_update(0);
  load_real();
  add_cycle(gan, ops, random, terms, clock, 1, false, kNoReduction);
  add_cycle(gan, ops, random, terms, clock, 0, true, generator_done(clock, reducers));
  if (reducers.generator != nullptr) reducers.generator->wait();
  clock.begin_phase(Phase::generator_update);
  update(gan.generator, ops, options.adam);

  const auto judge = [&](Phase forwards, Phase backwards, bool real, const LayerDone& done) {
    Tensor logits[2];
    clock.begin_phase(forwards);
    for (const std::size_t chain : {1, 0})
      logits[chain] =
          forward(discriminator, ops, real ? gan.domain(1 - chain) : gan.fake[chain], random.dropout, chain);
    clock.begin_phase(backwards);
    for (const std::size_t chain : {1, 0}) {
      const LossSlot slot = real ? chain == 0 ? kLossReal : kLossOtherReal : chain == 0 ? kLossFake : kLossOtherFake;
      backward(discriminator, ops, adversarial_gradient(gan, ops, logits[chain], real ? terms.real : terms.fake, slot),
               real ? kFirstBatch : kSecondBatch, done, chain);
    }
  };
  judge(Phase::discriminator_forward_real, Phase::discriminator_backward_real, true, kNoReduction);
  judge(Phase::discriminator_forward_fake, Phase::discriminator_backward_fake, false,
        discriminator_done(clock, reducers));
  if (reducers.discriminator != nullptr) reducers.discriminator->wait();
  clock.begin_phase(Phase::discriminator_update);
  update(discriminator, ops, options.adam);
}

}  // namespace

void begin_step(const Gan& gan, TensorOps& ops, const StepOptions& options) {
  ops.timeline().set_unusual(gan.lazy.any() && (penalty_is_due(gan, options) || path_is_due(gan)));
  ops.timeline().begin_step();
}

void average_path_length(Gan& gan, const Losses& losses) {
  if (losses.path_length > 0) gan.path_length += kPathShare * (losses.path_length - gan.path_length);
}

void begin_gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                    const LoadReal& load_real, Reducers reducers) {
  const auto begin = gan.step == StepKind::variational ? begin_variational_step
                     : gan.step == StepKind::cyclic    ? begin_cyclic_step
                                                       : begin_adversarial_step;
  begin(gan, ops, random, options, clock, load_real, reducers);
  update_average(gan, ops, options.average_decay);
  ops.end_step(gan.losses, kLossSlots);
}

Losses take_losses(TensorOps& ops) {
  float values[kLossSlots];
  ops.take(values);
  const auto sum = [&](std::initializer_list<LossSlot> slots) {
    double total = 0;  // a slot that a step does not use is 0
    for (const LossSlot slot : slots) total += double{values[slot]};
    return total;
  };
  return {sum({kLossReal, kLossFake, kLossPenalty, kLossOtherReal, kLossOtherFake}),
          sum({kLossGenerator, kLossOtherGenerator, kLossCycle, kLossOtherCycle, kLossPath}),
          double{values[kPathLength]}};
}

Losses gan_step(Gan& gan, TensorOps& ops, StepRandom& random, const StepOptions& options, StepClock& clock,
                const LoadReal& load_real, Reducers reducers) {
  begin_gan_step(gan, ops, random, options, clock, load_real, reducers);
  const Losses losses = take_losses(ops);
  average_path_length(gan, losses);
  return losses;
}

}  // namespace ganymede::kernel
