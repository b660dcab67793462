#include "kernel/gan.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

struct Small {
  Tensor real, latent, d_logits, losses;
};

Small plan_small(const Gan& gan, Arena& arena, int batch) {
  return {arena.tensor(gan.image.pixels(), batch), arena.tensor(gan.generator.inputs(), batch), arena.tensor(1, batch),
          arena.tensor(kLossSlots, 1)};
}

}  // namespace

void Gan::prepare(Ops& ops, int batch_size, std::uint64_t seed, bool with_average) {
  RandomStream for_generator(seed, "kernel/initial/generator"), for_discriminator(seed, "kernel/initial/discriminator");
  generator.prepare(ops, batch_size, for_generator);
  discriminator.prepare(ops, batch_size, for_discriminator);
  if (with_average) {
    average = ops.allocate(generator.gradient_bytes());
    ops.copy(average.floats(), generator.parameter_data(), generator.parameter_count());
  }

  Arena only_counts;
  plan_small(*this, only_counts, batch_size);
  small = ops.allocate(only_counts.used());
  Arena arena(small);
  const Small tensors = plan_small(*this, arena, batch_size);
  batch = batch_size;
  real = tensors.real;
  latent = tensors.latent;
  d_logits = tensors.d_logits;
  losses = tensors.losses.data;
  // Images pass through the workspace on their way in.
  ops.reserve_workspace(ops.dense_workspace_bytes(image.pixels(), 1, batch_size));
}

std::map<std::string, double> Gan::planned_memory_bytes(const Ops& ops, int batch_size, bool with_average) {
  const auto parameters = static_cast<double>(generator.gradient_bytes() + discriminator.gradient_bytes());
  const std::size_t workspace =
      std::max({generator.workspace_bytes(ops, batch_size), discriminator.workspace_bytes(ops, batch_size),
                ops.dense_workspace_bytes(image.pixels(), 1, batch_size)});
  Arena data;
  plan_small(*this, data, batch_size);
  std::map<std::string, double> bytes{
      {"parameters", parameters},
      {"gradients", parameters},
      {"optimizer", 2 * parameters},
      {"statistics",
       static_cast<double>((generator.statistic_count() + discriminator.statistic_count()) * sizeof(float))},
      {"activations", static_cast<double>(generator.planned_activation_bytes(batch_size) +
                                          discriminator.planned_activation_bytes(batch_size))},
      {"workspace", static_cast<double>(workspace)},
      {"data", static_cast<double>(data.used())}};
  if (with_average) bytes["average"] = static_cast<double>(generator.gradient_bytes());
  return bytes;
}

double Gan::step_flops_per_image(int discriminator_updates) const {
  const double g = generator.forward_flops_per_image(), g_first = generator.first_layer_flops_per_image();
  const double d = discriminator.forward_flops_per_image(), d_first = discriminator.first_layer_flops_per_image();
  // The fakes' forward pass; twice (real, fake) forward, weights and data, but not into the images.
  const double discriminator_update = g + 2 * (3 * d - d_first);
  // Through the discriminator and back; then weights and data, but not into the latents.
  const double generator_update = 2 * d + (2 * g - g_first);
  return discriminator_updates * discriminator_update + generator_update;
}

}  // namespace ganymede::kernel
