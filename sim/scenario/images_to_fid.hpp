#pragma once
// How long a scenario whose goal is an FID trains, if its training gets there after a number of images.

#include <cstdint>

#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Sets the images and steps of a training that gets to its FID after `images`, which is at least 1. Only an evaluation
/// says so: where evaluations are images, steps or epochs apart, the training goes on to the first one that is not
/// before. Throws ConfigError if these are more than 10^12 images apart.
void train_to_fid(Scenario& scenario, std::int64_t images);

}  // namespace ganymede::sim
