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

/// gpus x time x (idle + (peak - idle) x busy) x PUE: power taken as linear in the share of time that a device is busy;
/// of a host without its GPUs likewise. Preconditions: 0 <= busy <= 1, pue >= 1, the rest >= 0.
Energy gpu_energy(const GpuPower& power, double busy, std::int64_t gpus, Seconds time, double pue, GramsPerKwh carbon);

/// The clock, as a share of its highest, to which a power cap holds a busy GPU: the part of its power that is not idle
/// grows with the clock and the square of the voltage, which is taken to follow the clock, so with its third power (the
/// usual model of CMOS power; real curves are flatter near the top). 1 where the cap is not below the peak.
/// Precondition: cap > idle.
double capped_clock(const GpuPower& power, Watts cap);

}  // namespace ganymede
