// Runs on one node whose lives are exponential, against the renewal form of their mean and variance.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "scenario_files.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::sim {
namespace {

/// A random time by its mean and variance; independent ones add.
struct Moments {
  double mean = 0, variance = 0;
  Moments operator+(const Moments& other) const { return {mean + other.mean, variance + other.variance}; }
};

/// Nodes are lost after 1 / `per_s` seconds on average, and the next one is granted after `away_s` on average; both
/// are exponential, so that a run is renewed with each checkpoint that is complete and with each node.
struct Renewals {
  double per_s, away_s;

  /// Seconds on a new node until `whole_s` of them follow each other: n losses with the chance p (1 - p)^n, where
  /// p = exp(-whole_s per_s) is that none comes within them.
  Moments on_new_node(double whole_s) const {
    const double kept = std::exp(-per_s * whole_s), lost = 1 - kept, losses = lost / kept;
    const Moments life = life_below(whole_s), away{away_s, away_s * away_s};
    const Moments each = life + away;
    return {whole_s + losses * each.mean, losses * each.variance + lost / (kept * kept) * each.mean * each.mean};
  }
  /// The same where the node is there already and one that follows first needs `restart_s`: if it is not lost it takes
  /// `whole_s`, else the rest of its life, the time away and that on a new node.
  Moments on_node(double whole_s, double restart_s) const {
    const double kept = std::exp(-per_s * whole_s);
    const Moments again = life_below(whole_s) + Moments{away_s, away_s * away_s} + on_new_node(restart_s + whole_s);
    const double mean = kept * whole_s + (1 - kept) * again.mean;
    const double square = kept * whole_s * whole_s + (1 - kept) * (again.variance + again.mean * again.mean);
    return {mean, square - mean * mean};
  }

 private:
  /// A life that ends before `whole_s`.
  Moments life_below(double whole_s) const {
    const double kept = std::exp(-per_s * whole_s), most = per_s * whole_s;
    const double mean = (1 - (1 + most) * kept) / per_s / (1 - kept);
    const double square = (2 - (2 + 2 * most + most * most) * kept) / per_s / per_s / (1 - kept);
    return {mean, square - mean * mean};
  }
};

// Between checkpoints of a second each lie `every_s` of training; a node boots for 90 s, and reads the last checkpoint
// in half a second. With `away_s` of 0 the mean of a later interval is Daly's: M exp(R/M) (exp((tau + delta)/M) - 1).
TEST(RenewalRuns, TakeTheMeanAndTheVarianceOfTheirClosedForm) {
  constexpr int kIntervals = 20, kRuns = 300;
  constexpr double kStep = 0.01, kWrite = 1, kRead = 0.5;
  const ScenarioFiles files;
  for (const double life_s : {200.0, 600.0, 3000.0})
    for (const double every_s : {20.0, 60.0, 200.0})
      for (const double away_s : {0.0, 150.0}) {
        Json content = ScenarioFiles::basic();
        content["workload"]["steps"] = kIntervals * static_cast<int>(std::lround(every_s / kStep));
        content["platform"].update(
            {{"nodes", 1},
             {"notice", "0s"},
             {"lifetimes", {{"mean", fmt::format("{}s", life_s)}, {"back_after", fmt::format("{}s", away_s)}}}});
        content["storage"] = {{"checkpoint", "disk"}};
        content["checkpoint"] = {{"every", fmt::format("{}s", every_s)}, {"on_notice", false}};
        Scenario scenario = files.load(content);
        StepDistributionCache cache;
        std::vector<double> times;
        for (int run = 0; run < kRuns; ++run) {
          set_seed(scenario, static_cast<std::uint64_t>(run));
          ScenarioSteps steps(scenario, cache);
          times.push_back(to_seconds(simulate_run(scenario, steps).end).si);
        }
        const Renewals renewals{1 / life_s, away_s};
        const double whole_s = every_s + kWrite;
        Moments expected = renewals.on_new_node(kBoot + whole_s);
        for (int interval = 1; interval < kIntervals; ++interval)
          expected = expected + renewals.on_node(whole_s, kBoot + kRead);
        if (away_s == 0) {
          EXPECT_NEAR(renewals.on_node(whole_s, kBoot + kRead).mean,
                      life_s * std::exp((kBoot + kRead) / life_s) * std::expm1(whole_s / life_s), 1e-6 * life_s);
        }
        double mean = 0, square = 0;
        for (const double time : times) mean += time / kRuns;
        for (const double time : times) square += (time - mean) * (time - mean) / (kRuns - 1);
        const auto where = fmt::format("life {} s, every {} s, away {} s", life_s, every_s, away_s);
        EXPECT_NEAR(mean, expected.mean, 4 * std::sqrt(expected.variance / kRuns)) << where;
        EXPECT_NEAR(square / expected.variance, 1, 0.5) << where;
      }
}

}  // namespace
}  // namespace ganymede::sim
