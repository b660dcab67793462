#include "kernel/gan.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

void set_storage(Gan& gan, GanOptions options) {
  gan.discriminator.keep_tangents(options.gradient_penalty);
  // The discriminator's passes come between the generator's forward and backward pass and overwrite the shared memory;
  // a decoder's come between the encoder's, and the chains of a cyclic model take turns.
  gan.generator.keep_tangents(gan.lazy.path_every > 0);
  if (gan.lazy.path_every == 0) gan.generator.store_activations(options.activations, gan.step != StepKind::variational);
  if (!options.gradient_penalty)
    gan.discriminator.store_activations(options.activations, gan.step != StepKind::adversarial);
}

void plan_small(Gan& gan, Arena& arena, int batch, GanOptions options) {
  const int pixels = gan.image.pixels();
  gan.real = arena.tensor(pixels, batch);
  const bool cyclic = gan.step == StepKind::cyclic;
  if (!cyclic) gan.latent = arena.tensor(gan.generator.inputs(), batch);
  gan.d_logits = arena.tensor(gan.step == StepKind::variational ? 1 : gan.discriminator.outputs(), batch);
  gan.losses = arena.floats(kLossSlots);
  if (gan.fading) {
    gan.coarse = arena.tensor(gan.image.halves(gan.image.channels).coarse_features(), batch);
    gan.blurred = arena.tensor(pixels, batch);
  }
  if (options.gradient_penalty) gan.between = arena.tensor(pixels, batch);
  if (options.gradient_penalty || gan.lazy.path_every > 0) gan.direction = arena.tensor(pixels, batch);
  if (gan.lazy.path_every > 0)
    gan.style_direction = arena.tensor(gan.generator.layers()[gan.lazy.styles]->inputs(), batch);
  if (gan.classes > 0) *gan.labels = arena.tensor(gan.classes, batch);
  if (gan.step == StepKind::adversarial && gan.reduction == 1) return;
  gan.direction = arena.tensor(pixels, batch);
  if (cyclic) {
    for (Tensor* images : {&gan.other, &gan.fake[0], &gan.fake[1], &gan.d_fake}) *images = arena.tensor(pixels, batch);
    return;
  }
  if (gan.step == StepKind::adversarial) return;
  gan.noise = arena.tensor(gan.generator.inputs(), batch);
  gan.d_code = arena.tensor(gan.discriminator.outputs(), batch);
}

}  // namespace

void Gan::prepare(TensorOps& ops, int batch_size, std::uint64_t seed, GanOptions options) {
  RandomStream for_generator(seed, "kernel/initial/generator"), for_discriminator(seed, "kernel/initial/discriminator");
  set_storage(*this, options);
  const SharedSizes sizes =
      generator.shared_sizes(ops, batch_size).max_with(discriminator.shared_sizes(ops, batch_size));
  shared = ops.allocate(sizes.total());
  const SharedMemory memory(sizes, shared);
  generator.prepare(ops, batch_size, for_generator, memory);
  discriminator.prepare(ops, batch_size, for_discriminator, memory);
  if (options.average) {
    average = ops.allocate(generator.parameter_bytes());
    ops.copy(average.floats(), generator.parameter_data(), generator.parameter_floats());
  }

  Arena only_counts(ops.element_type());
  plan_small(*this, only_counts, batch_size, options);
  small = ops.allocate(only_counts.used());
  Arena arena(small, ops.element_type());
  plan_small(*this, arena, batch_size, options);
  batch = batch_size;
  // TensorOps::load_images uses the workspace.
  ops.reserve_workspace(ops.dense_workspace_bytes(image.pixels(), 1, batch_size));
}

std::map<std::string, double> Gan::planned_memory_bytes(const TensorOps& ops, int batch_size, GanOptions options) {
  set_storage(*this, options);
  const auto parameters = static_cast<double>(generator.parameter_bytes() + discriminator.parameter_bytes());
  const std::size_t workspace =
      std::max({generator.workspace_bytes(ops, batch_size), discriminator.workspace_bytes(ops, batch_size),
                ops.dense_workspace_bytes(image.pixels(), 1, batch_size)});
  Arena data(ops.element_type());
  plan_small(*this, data, batch_size, options);
  std::map<std::string, double> bytes{
      {"parameters", static_cast<double>(ops.parameter_bytes(generator.parameter_floats()) +
                                         ops.parameter_bytes(discriminator.parameter_floats()))},
      {"gradients", parameters},
      {"optimizer", 2 * parameters},
      {"statistics", static_cast<double>(generator.statistic_bytes() + discriminator.statistic_bytes())},
      {"activations", static_cast<double>(generator.planned_activation_bytes(ops, batch_size) +
                                          discriminator.planned_activation_bytes(ops, batch_size))},
      {"shared",
       static_cast<double>(
           generator.shared_sizes(ops, batch_size).max_with(discriminator.shared_sizes(ops, batch_size)).total())},
      {"workspace", static_cast<double>(workspace)},
      {"data", static_cast<double>(data.used())}};
  if (options.average) bytes["average"] = static_cast<double>(generator.parameter_bytes());
  return bytes;
}

void Gan::release_activations() {
  generator.release_activations();
  discriminator.release_activations();
  small = {};
  shared = {};
}

namespace {

void take_over_network(Network& to, const Network& from, TensorOps& ops) {
  for (const NamedRange& range : to.parameters()) {
    const auto& olds = from.parameters();
    const auto old = std::find_if(olds.begin(), olds.end(), [&](const NamedRange& o) { return o.name == range.name; });
    if (old == olds.end()) continue;
    ops.copy(to.parameter_data() + range.offset, from.parameter_data() + old->offset, range.size);
    for (const std::size_t moment : {0, 1})
      ops.copy(to.moment_data(moment) + range.offset, from.moment_data(moment) + old->offset, range.size);
  }
  to.set_updates(from.updates());
}

}  // namespace

void Gan::take_over(const Gan& from, TensorOps& ops) {
  take_over_network(generator, from.generator, ops);
  take_over_network(discriminator, from.discriminator, ops);
  if (!has_average()) return;
  ops.copy(average.floats(), generator.parameter_data(), generator.parameter_floats());
  for (const NamedRange& range : generator.parameters())
    for (const NamedRange& old : from.generator.parameters())
      if (old.name == range.name)
        ops.copy(average.floats() + range.offset, from.average.floats() + old.offset, range.size);
}

void Gan::place_classes(TensorOps& ops, const std::function<int(int)>& of_image) {
  if (classes == 0) return;
  std::vector<float> values(labels->size());
  for (int i = 0; i < batch; ++i) values[static_cast<std::size_t>(of_image(i) * batch + i)] = 1;
  ops.write_rows(*labels, values, classes);
}

void Gan::place_real(TensorOps& ops, std::span<const std::uint8_t> host_bytes) {
  ops.load_images(real, host_bytes.first(real.size()), darkest, channels());
  if (step == StepKind::cyclic)
    ops.load_images(other, host_bytes.subspan(real.size(), other.size()), darkest, channels());
  if (classes > 0) ops.load_images(*labels, host_bytes.subspan(real.size()), 0, classes);
  if (!fading) return;
  const BlockShape halves = image.halves(image.channels);
  ops.pool(coarse, real, halves, 1.0F / static_cast<float>(halves.elements()));
  ops.upsample(blurred, coarse, halves, 1);
  ops.combine(real, 1 - *share, blurred, *share);
}

double Gan::step_flops_per_image(int discriminator_updates, bool gradient_penalty) const {
  const double g = generator.forward_flops_per_image(), g_first = generator.first_layer_flops_per_image();
  const double d = discriminator.forward_flops_per_image(), d_first = discriminator.first_layer_flops_per_image();
  // Both networks once forward and back; only the gradient of the encoder's images is left out.
  if (step == StepKind::variational)
    return 3 * g + 3 * d - d_first + generator.recomputed_flops_per_image() +
           discriminator.recomputed_flops_per_image();
  // Each generator twice forward and back, once without the gradient of its images; each discriminator three times
  // forward, twice back without that gradient and once without that of its weights.
  if (step == StepKind::cyclic)
    return 6 * g - g_first + 8 * d - 2 * d_first + 2 * generator.recomputed_flops_per_image() +
           3 * discriminator.recomputed_flops_per_image();
  // The generator's forward pass; then, for real and for fake images, the discriminator's forward pass and the
  // gradients of its weights and activations (a forward pass's cost each), without the gradient of the images.
  double discriminator_update = g + 2 * (3 * d - d_first);
  if (gradient_penalty) discriminator_update += discriminator.penalty_flops_per_image() / lazy.penalty_every;
  // Forward and back through the discriminator; then the gradients of the generator's weights and activations, without
  // the gradient of the latents.
  double generator_update = 2 * d + (2 * g - g_first);
  if (lazy.path_every > 0) generator_update += generator.path_length_flops_per_image(lazy.styles) / lazy.path_every;
  const double d_again = discriminator.recomputed_flops_per_image();
  return discriminator_updates * (discriminator_update + 2 * d_again) + generator_update + d_again +
         generator.recomputed_flops_per_image();
}

}  // namespace ganymede::kernel
