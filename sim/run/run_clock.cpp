#include "sim/run/run_clock.hpp"

#include "common/units.hpp"
#include "sim/ledger/nanoseconds.hpp"

namespace ganymede::sim {

Nanoseconds to_nanoseconds(Seconds time) { return whole_nanoseconds(time); }
Seconds to_seconds(Nanoseconds time) { return Seconds{static_cast<double>(time) / kNanosecondsPerSecond}; }

}  // namespace ganymede::sim
