#pragma once
// The phases of a training step, which StepClock times and a step trace lists.

#include <iterator>
#include <string_view>

namespace ganymede::kernel {

/// In the order of a step. A phase that a training does not have is missing in its trace.
enum class Phase {
  load,
  copy,
  discriminator_forward_real,
  discriminator_backward_real,
  generator_forward,
  discriminator_forward_fake,
  discriminator_backward_fake,
  discriminator_gradient_penalty,
  discriminator_update,
  generator_forward_through_discriminator,
  generator_backward_through_discriminator,
  generator_backward,
  generator_update,
};

/// The phases before this one form the discriminator's update, which a step may repeat.
inline constexpr Phase kFirstOfGenerator = Phase::generator_forward_through_discriminator;

struct PhaseInfo {
  std::string_view name;
  /// The network whose update the phase serves; empty: neither. generator.forward serves both, and counts here as the
  /// generator's.
  std::string_view network;
  /// Where the phase's work runs: "host" (the loader), "copy" (from host to device) or "compute".
  std::string_view stream;
};

/// In the order of Phase.
inline constexpr PhaseInfo kPhases[] = {
    {"load", "", "host"},
    {"copy", "", "copy"},
    {"discriminator.forward_real", "discriminator", "compute"},
    {"discriminator.backward_real", "discriminator", "compute"},
    {"generator.forward", "generator", "compute"},
    {"discriminator.forward_fake", "discriminator", "compute"},
    {"discriminator.backward_fake", "discriminator", "compute"},
    {"discriminator.gradient_penalty", "discriminator", "compute"},
    {"discriminator.update", "discriminator", "compute"},
    {"generator.forward_through_discriminator", "generator", "compute"},
    {"generator.backward_through_discriminator", "generator", "compute"},
    {"generator.backward", "generator", "compute"},
    {"generator.update", "generator", "compute"},
};
inline constexpr std::size_t kPhaseCount = std::size(kPhases);

}  // namespace ganymede::kernel
