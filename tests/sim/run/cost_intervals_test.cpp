// The cost of a run at the bounds of its time.

#include <gtest/gtest.h>

#include <cmath>

#include "scenario_files.hpp"
#include "sim/run/run_clock.hpp"

namespace ganymede::sim {
namespace {
// Training takes ten and twenty nanoseconds. With fifteen more in all, each of these nanoseconds is stretched by one
// half.
TEST(Stretches, MoveWhatHappensWhileSomethingTrains) {
  const Stretch longer({{10, 20}, {30, 50}}, 15);
  EXPECT_EQ(longer.at(0), 0);
  EXPECT_EQ(longer.at(10), 10);
  EXPECT_EQ(longer.at(14), 16);
  EXPECT_EQ(longer.at(20), 25);
  EXPECT_EQ(longer.at(30), 35);
  EXPECT_EQ(longer.at(50), 65);
  EXPECT_EQ(longer.at(60), 75);
  // A boot from 14 to 30 takes 16 in any case.
  EXPECT_EQ(longer.start(14, 30), 35 - 16);
  // Training cannot take a negative time.
  const Stretch nothing({{10, 20}, {30, 50}}, -1000);
  EXPECT_EQ(nothing.at(20), 10);
  EXPECT_EQ(nothing.at(60), 30);
  EXPECT_EQ(Stretch().at(60), 60);
}

// One node of 7.20 USD/h whose GPU the trace does not know: the bounds are wide. The first node is lost at 1,890 s,
// after 90 s of boot and 1,800 s of training with its checkpoints; the second is there to the end: its boot, half a
// second of reading, the rest of the training, and a second for the last checkpoint. At each bound all the training
// takes as much longer or shorter as the run does, and each node is billed by whole seconds.
TEST(CostIntervals, StretchWhatWasLostAsWellAsWhatWasKept) {
  const ScenarioFiles files;
  Json content = ScenarioFiles::basic();
  content["platform"]["instance"] = "other";
  content["platform"]["nodes"] = 1;
  content["workload"]["steps"] = 390'000;
  content["storage"] = {{"checkpoint", "disk"}};
  content["checkpoint"] = {{"every", "1min"}};
  content["faults"]["events"] = {{{"at", "1890s"}, {"kind", "crash"}}};
  const Json result = Json::parse(documents::result_text(simulate(files.load(content))));
  const double total = number(result, "/time/total_s");
  const double last = total - 1890 - 90 - 0.5 - 1;  // training on the second node, in seconds
  ASSERT_GT(last, 60);
  for (const int bound : {0, 1}) {
    const double by = result["time"]["interval_s"][bound].get<double>() - total;
    ASSERT_GT(std::abs(by), last) << "as wide as it takes for the second node alone not to make the difference";
    const double factor = 1 + by / (1800 + last);
    const double seconds = std::ceil(90 + 1800 * factor) + std::ceil(90 + 0.5 + 1 + last * factor);
    EXPECT_EQ(result["cost"]["interval_usd"][bound], fmt::format("{:.6f}", 0.002 * seconds)) << bound;
  }
  EXPECT_NEAR(std::stod(result["cost"]["total_usd"].get<std::string>()), 0.002 * (1890 + std::ceil(total - 1890)),
              1e-9);
}

// No node is available for ten hours, during which nothing is rented and no power is drawn. A node is held for 90 s of
// boot and for the training; only the training is stretched at the bounds, at the same power.
TEST(CostIntervals, EnergyIsOfWhatIsHeld) {
  const ScenarioFiles files;
  Json content = ScenarioFiles::basic();
  content["workload"]["trace"] = "traces/other.json";
  files.folder().add("traces/other.json",
                     traces::write_step_trace(made_up_trace(std::vector<double>(40, 1e-3), "GPU-Y")));
  content["platform"]["nodes"] = 1;
  content["workload"]["steps"] = 390'000;
  files.folder().add("late.csv", "time_s,nodes\n0,0\n36000,1\n");
  content["platform"]["capacity"] = "late.csv";
  const Json result = Json::parse(documents::result_text(simulate(files.load(content))));
  const double total = number(result, "/time/total_s");
  const double held = total - 36'000;
  EXPECT_NEAR(number(result, "/pools/0/node_hours") * 3600, held, 1e-3);
  for (const int bound : {0, 1}) {
    const double by = result["time"]["interval_s"][bound].get<double>() - total;
    ASSERT_GT(std::abs(by), 0.1 * held);
    for (const char* what : {"kwh", "kg_co2e"})
      EXPECT_NEAR(result["energy"][std::string(what) + "_interval"][bound].get<double>(),
                  result["energy"][what].get<double>() * (held + by) / held, 1e-9)
          << what << bound;
  }
}

}  // namespace
}  // namespace ganymede::sim
