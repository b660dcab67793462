#pragma once
// One step of GAN training (Goodfellow et al. 2014, non-saturating generator loss), for every model and every backend.

#include "kernel/gan.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {

/// The discriminator's update on gan.real and as many fakes, then the generator's. The fakes are computed once and
/// serve both.
Losses gan_step(Gan& gan, Ops& ops, StepRandom& random, const AdamParameters& adam, StepClock& clock);

}  // namespace ganymede::kernel
