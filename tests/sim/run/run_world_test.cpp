// A run whose events come from a world outside the simulation.

#include <gtest/gtest.h>

#include "common/units.hpp"
#include "scenario_files.hpp"
#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::sim {
namespace {
/// Takes all events that processes decide, and lets them happen `late` after their time.
class PunctualWorld : public RunWorld {
 public:
  explicit PunctualWorld(Nanoseconds late) : late_(late) {}

  bool takes(const RunState&, const ScheduledEvent& event) override {
    if (!std::holds_alternative<NodeReady>(event.event)) return false;
    ScheduledEvent later = event;
    later.at += late_;
    own_.schedule(later);
    return true;
  }
  std::optional<ScheduledEvent> next(SimulationQueue& queue) override {
    if (queue.empty() && own_.empty()) return std::nullopt;
    const bool own = queue.empty() || (!own_.empty() && own_.next_at() <= queue.next_at());
    return own ? own_.pop() : queue.pop();
  }
  void measure(RunState&) override {}
  Nanoseconds stop_training() override { return 0; }
  void follow(const RunContext&, const RunState& state) override { last_phase_ = state.phase; }
  RunPhase last_phase() const { return last_phase_; }

 private:
  Nanoseconds late_;
  SimulationQueue own_;
  RunPhase last_phase_ = RunPhase::idle;
};

Json run_in(const Scenario& scenario, Nanoseconds late) {
  return Json::parse(run_child([&] {
    StepDistributionCache cache;
    ScenarioSteps steps(scenario, cache);
    const auto controller = make_controller(scenario);
    PunctualWorld world(late);
    const RunRecord record = RunSimulation(scenario, steps, *controller, &world).run();
    return documents::result_text(result_of(scenario, record));
  }));
}

TEST(RunWorld, ThatIsPunctualChangesNothing) {
  const Scenario scenario = ScenarioFiles().load(ScenarioFiles::basic());
  EXPECT_EQ(run_in(scenario, 0), simulate_json(scenario));
}

TEST(RunWorld, ReplacesPredictedTimesByItsOwn) {
  const Scenario scenario = ScenarioFiles().load(ScenarioFiles::basic());
  const Json late = run_in(scenario, to_nanoseconds(Seconds{5}));
  EXPECT_NEAR(number(late, "/time/total_s"), number(simulate_json(scenario), "/time/total_s") + 5, 1e-6);
}

TEST(TrainingProgress, AccountsForWhatWasMeasured) {
  StepDistribution predicted, measured;
  predicted.mean = Seconds{1};
  measured.mean = Seconds{2};
  predicted.pools = measured.pools = {PoolStep{}};
  TrainingProgress training({TrainingNode{}});
  Segment segment{.steps = &predicted,
                  .configuration = {.nodes = {1}},
                  .step_ns = 1e9,
                  .checkpoint_every = 10,
                  .checkpoint_ns = 1e9};
  training.begin_segment(segment, false);
  // 20 s: five steps of 2 s, a checkpoint after the fourth that took 3 s, and 7 s of a step under way.
  training.measure({{.steps = 5, .checkpoints = 1}, 4}, measured, 3e9);
  EXPECT_EQ(training.done(to_nanoseconds(Seconds{20})), 5);
  EXPECT_EQ(training.at_risk(to_nanoseconds(Seconds{20})), Seconds{2});
  training.end_segment(to_nanoseconds(Seconds{20}), true, 0);
  EXPECT_EQ(training.durable(), 4);
  const GpuSeconds account = training.ledger(0).close(1, Seconds{20});
  EXPECT_EQ(account.seconds(GpuUse::checkpoint), 3);
  EXPECT_EQ(account.seconds(GpuUse::compute), 4 * 2);
  EXPECT_EQ(account.seconds(GpuUse::lost), 20 - 3 - 8);
}

}  // namespace
}  // namespace ganymede::sim
