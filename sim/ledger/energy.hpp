#pragma once
// Electricity of GPUs and hosts, and the carbon emitted for it.

#include <cstdint>

#include "common/units.hpp"

namespace ganymede::sim {

/// Power of a GPU, or of a host without its GPUs.
struct DevicePower {
  Watts idle;  ///< while nothing runs on it
  Watts peak;  ///< while it is busy all the time
};

struct Energy {
  double kwh = 0;      ///< at the data centre's meter, its overhead (PUE) included
  double kg_co2e = 0;  ///< location-based: what the grid emits for these kWh
};

/// devices x time x (idle + (peak - idle) x busy) x PUE: power is taken to be linear in `busy`, the share of the time
/// in which a device is busy. Preconditions: 0 <= busy <= 1, pue >= 1, the rest >= 0.
Energy device_energy(const DevicePower& power, double busy, std::int64_t devices, Seconds time, double pue,
                     GramsPerKwh carbon);

/// The clock of a busy GPU under a power cap, as a share of its highest clock; 1 if the cap is not below the peak. It
/// follows the usual model of CMOS power: power above idle grows with the clock and the square of the voltage, and the
/// voltage follows the clock, so cap - idle = (peak - idle) x clock³. Real curves are flatter near the top.
/// Precondition: cap > idle.
double capped_clock(const DevicePower& power, Watts cap);

}  // namespace ganymede::sim
