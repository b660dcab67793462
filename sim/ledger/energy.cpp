#include "sim/ledger/energy.hpp"

#include <cassert>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kGramsPerKg = 1e3;

}  // namespace

Energy device_energy(const DevicePower& power, double busy, std::int64_t devices, Seconds time, double pue,
                     GramsPerKwh carbon) {
  assert(0 <= busy && busy <= 1 && devices >= 0 && time.si >= 0 && pue >= 1 && carbon.si >= 0);
  const Watts drawn = power.idle + (power.peak - power.idle) * busy;
  const Joules at_the_meter = static_cast<double>(devices) * (drawn * time) * pue;
  const double kwh = at_the_meter.si / kJoulesPerKwh;
  return {.kwh = kwh, .kg_co2e = kwh * carbon.si / kGramsPerKg};
}

double capped_clock(const DevicePower& power, Watts cap) {
  assert(cap > power.idle);
  if (cap >= power.peak) return 1;
  return portable_exp(portable_log((cap - power.idle) / (power.peak - power.idle)) / 3);
}

}  // namespace ganymede::sim
