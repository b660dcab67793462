// The policy deadline on recorded spot capacity: whoever is late could not have been in time by any change to on-demand
// nodes at one of its decisions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>

#include "scenario_files.hpp"
#include "sim/run/controller.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::sim {
namespace {

/// Decides like the scenario's policy, but from the `changes_at`-th decision on it asks for what the scenario asks for,
/// on demand.
class OnDemandFrom : public Controller {
 public:
  OnDemandFrom(const Scenario& scenario, int changes_at)
      : Controller(scenario), policy_(make_controller(scenario)), changes_at_(changes_at) {}
  int asked() const { return asked_; }

 private:
  policies::Decision ask(const policies::Observation& seen) override {
    if (asked_++ < changes_at_) return policy_->decide(seen);
    policies::Decision decision;
    for (const ScenarioPool& pool : scenario_.pools)
      decision.nodes.push_back(pool.pool.market == platforms::Market::spot ? 0 : scenario_.pools[0].pool.nodes);
    return decision;
  }
  std::unique_ptr<Controller> policy_;
  int changes_at_, asked_ = 0;
};

class DeadlineRuns {
 public:
  Scenario load(const Json& content, const std::string& capacity) const {
    files_.folder().add("c.csv", "time_s,nodes\n" + capacity);
    return files_.load(content);
  }
  /// So many hours of training on as many nodes.
  static Json content(int nodes, double hours, double deadline_s) {
    Json content = ScenarioFiles::basic();
    content["platform"] = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}, {"market", "spot"}};
    content["platform"]["nodes"] = content["platform"]["max_nodes"] = nodes;
    content["platform"]["capacity"] = "c.csv";
    content["storage"] = {{"checkpoint", "s3"}};
    content["checkpoint"] = {{"every", "10min"}};
    content["provisioning"] = {{"boot", "90s"}, {"framework_start", "15s"}, {"communicator_start", "5s"}};
    content["workload"]["steps"] = static_cast<std::int64_t>(hours * 360'000);
    content["policy"] = {{"name", "deadline"}};
    content["deadline"] = fmt::format("{}s", deadline_s);
    return content;
  }

 private:
  ScenarioFiles files_;
};

/// The time of the run, and how often its policy was asked.
std::pair<double, int> run(const Scenario& scenario, StepDistributionCache& cache, int changes_at) {
  ScenarioSteps times(scenario, cache);
  OnDemandFrom controller(scenario, changes_at);
  const double total_s = to_seconds(simulate_run(scenario, times, controller).end).si;
  return {total_s, controller.asked()};
}

constexpr int kNoChange = 1'000'000;

double seconds_of(const Json& content, const std::string& capacity, int changes_at = kNoChange) {
  static const DeadlineRuns kRuns;
  StepDistributionCache cache;
  return run(kRuns.load(content, capacity), cache, changes_at).first;
}

// An hour of work takes 3,720 s on demand; spot has a node from the second hour on. Once the policy waited for it, for
// as long as it knew no speed.
TEST(DeadlineRun, DoesNotWaitForSpotWithoutKnowingHowLongTheWorkTakes) {
  const Json content = DeadlineRuns::content(1, 1, 4500);
  EXPECT_LT(seconds_of(content, "0,0\n7200,1\n", 0), 4500);
  EXPECT_LT(seconds_of(content, "0,0\n7200,1\n"), 4500);
}

// Spot is gone whenever there is little time left to change, so that a change that is decided at the next look is late.
TEST(DeadlineRun, LeavesTimeUntilItsNextLook) {
  for (int gone_s = 1800; gone_s < 5400; gone_s += 150)
    EXPECT_LT(seconds_of(DeadlineRuns::content(1, 1, 5400), fmt::format("0,1\n{},0\n", gone_s)), 5400) << gone_s;
}

// Forty minutes of evaluations and two of checkpoints go with an hour of training.
TEST(DeadlineRun, CountsThePausesOfTheRest) {
  Json content = DeadlineRuns::content(1, 1, 8400);
  content["evaluation"] = {{"every", "600s"}, {"fixed", "400s"}};
  EXPECT_LT(seconds_of(content, "0,1\n", 0), 8400);
  EXPECT_LT(seconds_of(content, "0,1\n3600,0\n"), 8400);
}

TEST(DeadlineRun, IsOnSpotWhereThereIsTime) {
  static const DeadlineRuns kRuns;
  const Scenario scenario = kRuns.load(DeadlineRuns::content(1, 10, 20 * 3600), "0,1\n");
  StepDistributionCache cache;
  ScenarioSteps times(scenario, cache);
  OnDemandFrom controller(scenario, kNoChange);
  const RunRecord record = simulate_run(scenario, times, controller);
  double on_demand_s = 0;
  for (const Node& node : record.nodes)
    if (scenario.pools[node.pool].pool.market != platforms::Market::spot && node.granted != kNever)
      on_demand_s += to_seconds(std::min(node.gone, record.end) - node.granted).si;
  EXPECT_LT(on_demand_s, 1200) << "it measures there for one interval of decisions";
}

RC_GTEST_PROP(DeadlineProperty, WhoIsLateCouldNotHaveBeenInTime, ()) {
  static const DeadlineRuns kRuns;
  const int nodes = *rc::gen::inRange(1, 3);
  const double hours = *rc::gen::inRange(5, *rc::gen::element(40, 400, 1200)) / 10.0;
  Json content = DeadlineRuns::content(nodes, hours, hours * 36 * *rc::gen::inRange(100, 220) + 120);
  content["platform"]["max_nodes"] = nodes + *rc::gen::element(0, 0, 1, 3);
  content["checkpoint"]["on_notice"] = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) content.erase("provisioning");  // boots are drawn
  content["seed"] = *rc::gen::inRange(0, 1000);
  content["platform"]["notice"] = fmt::format("{}s", *rc::gen::inRange(0, 300));
  content["checkpoint"]["every"] = fmt::format("{}s", *rc::gen::inRange(60, 7200));
  if (*rc::gen::arbitrary<bool>())
    content["evaluation"] = {{"every", fmt::format("{}s", *rc::gen::inRange(300, 3000))},
                             {"fixed", fmt::format("{}s", *rc::gen::inRange(1, 500))}};
  std::string capacity;
  int at_s = 0;
  for (int row = *rc::gen::inRange(1, 100); row > 0; --row) {
    capacity += fmt::format("{},{}\n", at_s, *rc::gen::inRange(0, nodes + 1));
    at_s += *rc::gen::inRange(60, 20'000);
  }
  StepDistributionCache cache;
  if (*rc::gen::arbitrary<bool>()) {  // the deadline is when nodes on demand alone end, or a little later
    const double alone_s = run(kRuns.load(content, capacity), cache, 0).first;
    content["deadline"] = fmt::format("{}s", std::ceil(alone_s * (1 + *rc::gen::element(0.0, 0.01, 0.1, 0.3))));
  }
  const Scenario scenario = kRuns.load(content, capacity);
  const auto [total_s, asked] = run(scenario, cache, kNoChange);
  const double deadline_s = scenario.deadline->si;
  if (total_s <= deadline_s) return;
  for (int changes_at = 0; changes_at < asked; ++changes_at)
    RC_ASSERT(run(scenario, cache, changes_at).first > deadline_s);
}

}  // namespace
}  // namespace ganymede::sim
