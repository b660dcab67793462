#pragma once
// Electricity of a run's GPUs, and the carbon that comes with it.

#include <cstdint>

#include "common/units.hpp"

namespace ganymede {

/// What a GPU draws when nothing runs on it, and when it is busy all the time.
struct GpuPower {
  Watts idle;
  Watts peak;
};

struct Energy {
  double kwh = 0;      ///< at the data centre's meter, so with its overhead (PUE)
  double kg_co2e = 0;  ///< location-based: what the grid emits for these kWh
};

/// gpus x time x (idle + (peak - idle) x busy) x PUE: power taken as linear in the share of time that the GPU is busy.
/// Only the GPUs are counted; a host's CPUs, memory and network are not. Preconditions: 0 <= busy <= 1, pue >= 1, the
/// rest >= 0.
Energy gpu_energy(const GpuPower& power, double busy, std::int64_t gpus, Seconds time, double pue, GramsPerKwh carbon);

}  // namespace ganymede
