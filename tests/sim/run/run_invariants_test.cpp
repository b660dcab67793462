// Invariants of every run, checked on random scenarios with faults. RC_PARAMS="max_success=10000" tries more of them.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "scenario_files.hpp"
#include "support/when.hpp"

namespace ganymede::sim {
namespace {
template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

std::string seconds(int low, int high) { return std::to_string(*rc::gen::inRange(low, high)) + "s"; }

Json random_faults() {
  Json faults = Json::object();
  if (*rc::gen::arbitrary<bool>()) faults["crash"] = {{"every", seconds(500, 20'000)}};
  if (*rc::gen::arbitrary<bool>())
    faults["straggler"] = {{"every", seconds(500, 5'000)}, {"factor", 1.5}, {"for", seconds(10, 300)}};
  if (*rc::gen::arbitrary<bool>())
    faults["network"] = {{"every", seconds(500, 5'000)}, {"factor", 0.5}, {"for", seconds(10, 300)}};
  faults["events"] = Json::array();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    faults["events"].push_back(
        {{"at", seconds(0, 3'000)}, {"kind", one_of({"crash", "interruption"})}, {"nodes", *rc::gen::inRange(1, 3)}});
  return faults;
}

Json random_scenario() {
  Json content = ScenarioFiles::basic();
  content["seed"] = *rc::gen::inRange(0, 1000);
  content["workload"].erase("steps");
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      content["workload"]["steps"] = *rc::gen::inRange(1, 300'000);
      break;
    case 1:
      content["workload"]["epochs"] = *rc::gen::inRange(1, 100);
      break;
    default:
      content["workload"]["images"] = *rc::gen::inRange(1, 20'000'000);
  }
  Json& platform = content["platform"];
  const bool four = *rc::gen::arbitrary<bool>();
  platform = {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", four ? "four" : "one"}};
  // Nodes are sold on spot and on demand, so that policies may change between them.
  if (*rc::gen::inRange(0, 3) == 0)
    platform = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}, {"market", "spot"}};
  platform["nodes"] = *rc::gen::inRange(1, 4);
  platform["max_nodes"] = 4;
  if (platform["instance"] == "four") platform["gpus_per_node"] = *rc::gen::inRange(1, 5);
  platform["notice"] = seconds(0, 200);
  if (*rc::gen::arbitrary<bool>())
    platform["lifetimes"] = {{"mean", seconds(300, 20'000)}, {"back_after", seconds(0, 2'000)}};
  if (*rc::gen::inRange(0, 4) == 0) platform["lifetimes"] = {{"bathtub", "24h"}};
  if (*rc::gen::inRange(0, 4) == 0) platform["capacity"] = "c.csv";
  const bool aws = platform["catalog"] == "aws";
  content["storage"] = {{"checkpoint", aws ? "s3" : "disk"}};
  if (*rc::gen::arbitrary<bool>()) content["storage"]["dataset"] = aws ? "gp2" : one_of({"disk", "burst"});
  if (*rc::gen::inRange(0, 4) != 0)
    content["checkpoint"] = {{"every", one_of({"10s", "60s", "10min", "1epoch", "daly"})},
                             {"on_notice", *rc::gen::arbitrary<bool>()}};
  content["provisioning"] = {
      {"boot", {{"median", "30s"}, {"spread", 0.5}}}, {"queue", seconds(0, 60)}, {"framework_start", seconds(0, 20)}};
  content["faults"] = random_faults();
  content["policy"] = {{"name", one_of({"fixed", "resource-aware", "predictive", "spot-first", "kubernetes-autoscaler",
                                        "budget", "deadline", "uniform-progress", "carbon-aware", "cheapest-region"})}};
  if (*rc::gen::arbitrary<bool>()) content["deadline"] = seconds(600, 20'000);
  if (*rc::gen::arbitrary<bool>()) content["budget"] = "20USD";
  return content;
}

traces::StepTrace uneven() {
  std::vector<double> scale;
  for (int i = 0; i < 60; ++i) scale.push_back(1e-3 * (1 + 0.05 * (i * 7 % 11)));
  return made_up_trace(scale);
}

const ScenarioFiles& files() {
  static const ScenarioFiles kFiles(uneven());
  static const auto kCapacity = kFiles.folder().add("c.csv", "time_s,nodes\n0,3\n200,1\n500,4\n1500,0\n1800,4\n");
  return kFiles;
}

/// True if they are the same but for the rounding of a sum of doubles (sim/ledger checks the exact sums).
bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); }

void check_ledger(const Result& run) {
  std::array<double, kGpuUseNames.size()> pools{};
  for (const PoolUse& pool : run.pools) {
    double sum = 0;
    for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) {
      RC_ASSERT(pool.gpu_seconds.by_use[use] >= 0);
      sum += pool.gpu_seconds.by_use[use];
      pools[use] += pool.gpu_seconds.by_use[use];
    }
    RC_ASSERT(same(sum, pool.gpu_seconds.total));
  }
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) RC_ASSERT(same(pools[use], run.gpu_seconds.by_use[use]));
  MicroUsd sum;
  for (const BillItem& item : run.bill.items) sum += item.usd;
  RC_ASSERT(sum == run.bill.total() && sum == run.usd);
}

RC_GTEST_PROP(RunInvariants, HoldOnRandomScenariosWithFaults, ()) {
  NOT_SANITIZED("tests/chaos runs there, which checks the same on random scenarios");
  const Scenario scenario = files().load(random_scenario());
  Result run;
  try {
    run = simulate(scenario);
  } catch (const Infeasible&) {
    RC_TAG("never finishes");
    return;
  }
  check_ledger(run);
  // The run reaches its target.
  if (scenario.target == Target::steps)
    RC_ASSERT(run.steps == scenario.steps);
  else
    RC_ASSERT(run.images == scenario.images);
  // A loss takes at most the training since the last durable checkpoint. An interval counts steps, so a change of speed
  // may stretch it.
  if (scenario.checkpoints.every == Checkpoints::Every::interval)
    RC_ASSERT(run.lost_training.si <=
              1e-6 + static_cast<double>(run.losses) * (2.5 * scenario.checkpoints.interval.si + 1));
  if (run.losses == 0) RC_ASSERT(run.lost_training.si == 0);
  RC_ASSERT(run.events.front().what == "requested" || run.events.front().what == "waiting");
  RC_ASSERT(run.events.back().what == "finished");
  Seconds before;
  for (const RunEvent& event : run.events) {
    RC_ASSERT(event.at >= before);
    before = event.at;
  }
  RC_ASSERT(run.events.back().at == run.total);
  RC_ASSERT(run.interval_s.low <= run.sampling_interval_s.low && run.sampling_interval_s.low <= run.total.si);
  RC_ASSERT(run.interval_s.high >= run.sampling_interval_s.high && run.sampling_interval_s.high >= run.total.si);
  RC_ASSERT(documents::result_text(simulate(scenario)) == documents::result_text(run));
}

}  // namespace
}  // namespace ganymede::sim
