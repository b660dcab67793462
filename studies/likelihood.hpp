#pragma once
// What verdicts weigh measurements with.

#include "common/random.hpp"

namespace ganymede::studies {

inline double ln(double value) { return portable_log(value); }

/// The density of a normal distribution around 0.
inline double normal_density(double x, double deviation) {
  return portable_exp(-0.5 * x * x / (deviation * deviation)) / (2.5066282746 * deviation);
}

}  // namespace ganymede::studies
