#include "sim/ledger/energy.hpp"

#include <gtest/gtest.h>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;

const DevicePower kV100{.idle = Watts{50}, .peak = Watts{300}};

// Eight GPUs for half an hour at 40 % busy: 8 x (50 + 0.4 x 250) W x 0.5 h = 0.6 kWh; with a PUE of 1.5, 0.9 kWh at the
// meter; at 400 g/kWh, 0.36 kg.
TEST(Energy, ByHand) {
  const Energy energy = device_energy(kV100, 0.4, 8, 1800_s, 1.5, GramsPerKwh{400});
  EXPECT_NEAR(energy.kwh, 0.9, 1e-12);
  EXPECT_NEAR(energy.kg_co2e, 0.36, 1e-12);
}

TEST(Energy, OfAnIdleAndOfABusyGpuAreItsLimits) {
  EXPECT_NEAR(device_energy(kV100, 0, 1, 3600_s, 1, GramsPerKwh{1000}).kwh, 0.050, 1e-12);
  EXPECT_NEAR(device_energy(kV100, 1, 1, 3600_s, 1, GramsPerKwh{1000}).kwh, 0.300, 1e-12);
  EXPECT_NEAR(device_energy(kV100, 1, 1, 3600_s, 1, GramsPerKwh{1000}).kg_co2e, 0.300, 1e-12);
}

TEST(Energy, OfNoTimeOrNoGpusIsNone) {
  EXPECT_EQ(device_energy(kV100, 0.5, 8, 0_s, 1.2, GramsPerKwh{400}).kwh, 0);
  EXPECT_EQ(device_energy(kV100, 0.5, 0, 10_s, 1.2, GramsPerKwh{400}).kg_co2e, 0);
}

// Power above idle grows with the cube of the clock: an eighth of 250 W is left at half the clock.
TEST(CappedClock, IsTheCubeRootOfThePowerThatIsLeft) {
  EXPECT_EQ(capped_clock(kV100, Watts{300}), 1);
  EXPECT_EQ(capped_clock(kV100, Watts{400}), 1);
  EXPECT_NEAR(capped_clock(kV100, Watts{81.25}), 0.5, 1e-12);
  EXPECT_NEAR(capped_clock(kV100, Watts{50 + 250 * 0.729}), 0.9, 1e-12);
}

}  // namespace
}  // namespace ganymede::sim
