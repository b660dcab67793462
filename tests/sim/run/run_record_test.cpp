// Bill, energy, utilization and warnings of a run whose record is a literal: two nodes are granted at once, boot for
// 90 s and train from 100 s to 1,100 s, 100,000 steps of 10 ms. The second is lost at 600 s.

#include "sim/run/run_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/units.hpp"
#include "run_literals.hpp"
#include "sim/run/run_bill.hpp"
#include "sim/run/run_energy.hpp"
#include "sim/run/run_result.hpp"
#include "sim/run/run_utilization.hpp"
#include "sim/run/run_warnings.hpp"

namespace ganymede::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kUsdPerSecond = 0.001;

class Records : public testing::Test {
 protected:
  static Node node(Nanoseconds gone, bool interrupted) {
    Node node;
    node.state = gone == kNever ? Node::State::ready : Node::State::gone;
    node.joined = true;
    node.interrupted = interrupted;
    node.granted = 0;
    node.runs = node.readied = 90 * kSecond;
    node.gone = gone;
    return node;
  }
  Records() {
    record_.end = 1100 * kSecond;
    record_.nodes = {node(kNever, false), node(600 * kSecond, true)};
    record_.trained = {{100 * kSecond, 1100 * kSecond}};
    Ledger ledger;
    ledger.add(GpuUse::provisioning, 2, Seconds{100});
    ledger.add(GpuUse::compute, 1, Seconds{1500});
    record_.ledgers = {ledger};
    record_.device_s = {850};
    record_.totals.steps = 100'000;
    record_.totals.training_s = 1000;
    record_.totals.device_s = 850;
    record_.totals.host_s = 1360;
    record_.totals.flops = 1.7e15;
    record_.totals.link_s = 110;
    record_.totals.checkpoints = 3;
    record_.steps = 100'000;
    record_.losses = 1;
    record_.most_gpus = 2;
    WorkloadSummary workload;
    workload.rule = "recorded steps";
    record_.workloads = {workload};
  }
  std::vector<PoolAccount> accounts() const { return close_accounts(scenario_, record_); }
  RunEnergy energy(const Interval& bounds = {1100, 1100}) const {
    return energy_of(scenario_, record_, accounts(), {std::nullopt}, bounds);
  }
  Bill bill(Nanoseconds longer = 0) const { return bill_of(scenario_, record_, energy(), longer).bill; }
  std::vector<std::string> items() const {
    std::vector<std::string> names;
    for (const BillItem& item : bill().items) names.push_back(item.item);
    return names;
  }

  Scenario scenario_ = literal_scenario(2);
  RunRecord record_;
};

TEST_F(Records, SayHowLongNodesWereHeld) {
  EXPECT_EQ(held_time(record_, 0), (1100 + 600) * kSecond);
  EXPECT_EQ(held_at_end(record_, 0), 1);
  EXPECT_EQ(most_held(record_), 2);
  scenario_.charges.idle_tail = Seconds{60};
  EXPECT_EQ(held_with_tail(scenario_, record_, 0), (1100 + 600 + 60) * kSecond);
}

// Training takes 100 s longer than its 1,000 s: the first node is held 100 s longer, the second one 50 s.
TEST_F(Records, AreStretchedWhereTrainingTakesLonger) {
  const Stretch stretch(record_.trained, 100 * kSecond);
  EXPECT_EQ(held_time(record_, 0, stretch), (1200 + 650) * kSecond);
  EXPECT_DOUBLE_EQ(held_ratio(scenario_, record_, 0, stretch), 1850.0 / 1700);
}

TEST_F(Records, AreMeteredFromWhereTheProvidersBillingStarts) {
  const std::vector<Rental> rentals = rentals_of(scenario_, record_, 0);
  ASSERT_EQ(rentals.size(), 2U);
  EXPECT_EQ(rentals[0].from, 0);
  EXPECT_EQ(rentals[0].to, 1100 * kSecond);
  EXPECT_FALSE(rentals[0].interrupted);
  EXPECT_TRUE(rentals[1].interrupted);
  platforms::Platform platform = *scenario_.pools[0].platform;
  platform.billing.start = platforms::Billing::Start::ready;
  scenario_.pools[0].platform = std::make_shared<const platforms::Platform>(platform);
  EXPECT_EQ(rentals_of(scenario_, record_, 0)[1].from, 90 * kSecond);
}

TEST_F(Records, CloseTheirAccounts) {
  const std::vector<PoolAccount> closed = accounts();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].gpu_seconds.total_seconds(), 1700);
  EXPECT_EQ(closed[0].gpu_seconds.seconds(GpuUse::idle), 0);
}

TEST_F(Records, AreBilledByTheSecond) {
  EXPECT_THAT(items(), ElementsAre("instance-hours"));
  EXPECT_NEAR(total_usd(bill()), 1700 * kUsdPerSecond, 1e-9);
  EXPECT_NEAR(total_usd(bill(100 * kSecond)), 1850 * kUsdPerSecond, 1e-9);
}

TEST_F(Records, PayForStorageWhileTheyLast) {
  add_checkpoints(scenario_);
  scenario_.checkpoints.storage->rates.per_month = MicroUsd{100'000};
  scenario_.checkpoints.storage->rates.per_1000_put = MicroUsd{5'000'000};
  EXPECT_THAT(items(), ElementsAre("instance-hours", "storage"));
  const double months = 1100.0 / 3600 / 730;
  EXPECT_NEAR(bill().items[1].quantity, 48e6 / 1e9 * months, 1e-15);
  // An object store charges requests: 48 MB are written in six parts, created and completed, three times.
  scenario_.checkpoints.storage->object_store = true;
  EXPECT_THAT(items(), ElementsAre("instance-hours", "storage", "write requests"));
  EXPECT_DOUBLE_EQ(bill().items[2].quantity, 3 * 8 / 1000.0);
}

TEST_F(Records, PayForBootDisks) {
  platforms::Storage disk;
  disk.name = "gp3";
  disk.rates.per_month = MicroUsd{100'000};
  scenario_.charges.boot_disk = disk;
  scenario_.charges.boot_disk_size = Bytes{100e9};
  EXPECT_NEAR(bill().items.at(1).quantity, 100 * 1700.0 / 3600 / 730, 1e-12);
  // The disk of the node that was taken back is kept until the end, because no other node took its place.
  scenario_.charges.boot_disk_kept = true;
  EXPECT_NEAR(bill().items.at(1).quantity, 100 * 2200.0 / 3600 / 730, 1e-12);
}

TEST_F(Records, SayWhatTheBillLeavesOut) {
  platforms::Platform platform = *scenario_.pools[0].platform;
  platform.provider = "aws";
  scenario_.pools[0].platform = std::make_shared<const platforms::Platform>(platform);
  add_checkpoints(scenario_);
  EXPECT_THAT(bill_of(scenario_, record_, energy()).warnings,
              ElementsAre("no price is known of disk of lab, and none is in the bill"));
}

// GPUs of 50 to 250 W that are busy half of the time draw 150 W; the building (PUE 1.5) adds half as much.
TEST_F(Records, DrawElectricity) {
  const RunEnergy used = energy({990, 1210});
  ASSERT_TRUE(used.total);
  const double kwh = 150.0 * 1700 * 1.5 / 3.6e6;
  EXPECT_NEAR(used.total->kwh, kwh, 1e-12);
  EXPECT_NEAR(used.total->kg_co2e, kwh * 0.4, 1e-12);
  EXPECT_NEAR(used.gpu_kwh, kwh, 1e-12);
  EXPECT_EQ(used.host_kwh, 0);
  EXPECT_THAT(used.warnings, ElementsAre(HasSubstr("of the GPUs alone")));
  // 110 s of 1,000 s of training more or less: 110 s of the first node and 55 s of the second.
  EXPECT_NEAR(used.kwh.low, kwh * (1700 - 165) / 1700, 1e-12);
  EXPECT_NEAR(used.kwh.high, kwh * (1700 + 165) / 1700, 1e-12);
}

// Three more GPUs in each node, which nobody uses, draw 50 W each on top: the host is no less busy for them. No vCPUs
// are known here, so that hosts of 60 to 150 W are as busy as the GPUs that train.
TEST_F(Records, DrawMoreForGpusThatNobodyUses) {
  platforms::Platform platform = *scenario_.pools[0].platform;
  const auto instance = std::find_if(platform.instances.begin(), platform.instances.end(),
                                     [&](const auto& of) { return of.name == scenario_.pools[0].pool.instance; });
  instance->idle = Watts{60};
  instance->peak = Watts{150};
  const auto drawn = [&](int gpus) {
    instance->gpus = gpus;
    scenario_.pools[0].platform = std::make_shared<const platforms::Platform>(platform);
    return energy().total->kwh;
  };
  const double kwh_of_a_watt = 1700 * 1.5 / 3.6e6;
  EXPECT_NEAR(drawn(1), (150 + 105) * kwh_of_a_watt, 1e-12);
  EXPECT_NEAR(drawn(4), (150 + 105 + 3 * 50) * kwh_of_a_watt, 1e-12);
}

TEST_F(Records, DoNotEstimateEnergyOfAnUnknownPower) {
  platforms::Platform platform = *scenario_.pools[0].platform;
  platform.gpus[0].peak.reset();
  scenario_.pools[0].platform = std::make_shared<const platforms::Platform>(platform);
  const RunEnergy used = energy();
  EXPECT_FALSE(used.total);
  EXPECT_FALSE(used.pools[0]);
  EXPECT_THAT(used.warnings, ElementsAre(HasSubstr("energy is not estimated")));
}

TEST_F(Records, SayHowBusyTheHardwareWas) {
  const RunUtilization use = utilization_of(scenario_, record_, accounts());
  EXPECT_DOUBLE_EQ(use.gpu_busy, 850.0 / 1700);
  EXPECT_DOUBLE_EQ(use.gpu_flops, 1.7e15 / (10e12 * 1700));
  EXPECT_DOUBLE_EQ(use.network, 0.1);
  EXPECT_DOUBLE_EQ(use.cpu.value(), 0.1);  // of 8 vCPUs in 1,700 s
  EXPECT_THAT(use.warnings, IsEmpty());
  record_.totals.host_s = 2 * 8 * 1700;
  EXPECT_THAT(utilization_of(scenario_, record_, accounts()).warnings, ElementsAre(HasSubstr("2.0 times the vCPUs")));
}

TEST_F(Records, DivideTheMoneyByWhatTheGpusDid) {
  const CostByUse uses = cost_by_use(scenario_, record_, accounts(), bill());
  EXPECT_EQ(uses.by_gpu_use[static_cast<std::size_t>(GpuUse::provisioning)].value, 200'000);
  EXPECT_EQ(uses.by_gpu_use[static_cast<std::size_t>(GpuUse::compute)].value, 1'500'000);
  EXPECT_EQ(uses.minimum_and_rounding.value, 0);
  EXPECT_EQ(uses.idle_tail.value, 0);
}

TEST_F(Records, WarnOfWhatTheirInputsLeaveOpen) {
  EXPECT_THAT(warnings_of(scenario_, record_), IsEmpty());
  StepDistribution imprecise = literal_steps({2});
  imprecise.warnings = {"imprecise"};
  record_.distributions = {&imprecise, &imprecise};
  record_.events_truncated = true;
  record_.workloads[0]->warnings = {"transferred"};
  scenario_.warnings = {"left out"};
  EXPECT_THAT(warnings_of(scenario_, record_),
              ElementsAre("transferred", "left out", "only the first 20000 events are listed", "imprecise"));
}

TEST_F(Records, WarnOfUnconfirmedFactsOfPoolsThatWereUsed) {
  platforms::Platform platform = *scenario_.pools[0].platform;
  platform.billing.origin.unconfirmed = "nobody says";
  scenario_.pools[0].platform = std::make_shared<const platforms::Platform>(platform);
  EXPECT_THAT(warnings_of(scenario_, record_), Contains("unconfirmed: billing: nobody says"));
  record_.workloads[0].reset();
  EXPECT_THAT(warnings_of(scenario_, record_), IsEmpty());
}

TEST_F(Records, NameTheLeastCertainInput) {
  EXPECT_EQ(step_inputs(record_), "measured");
  EXPECT_EQ(step_source(record_), "recorded steps");
  EXPECT_EQ(interruption_risk(scenario_, record_), "none");
  record_.workloads[0]->provenance = calibration::Provenance::transferred;
  scenario_.pools[0].spot = Spot::drawn;
  EXPECT_EQ(step_inputs(record_), "transferred");
  EXPECT_EQ(interruption_risk(scenario_, record_), "assumed");
}

TEST_F(Records, BecomeAResult) {
  record_.error.shorter_s = 30;
  record_.error.longer_s = 75;
  record_.error.sampling_s = 40;
  record_.error.low_s = 5;
  scenario_.deadline = Seconds{1000};
  const Result result = result_of(scenario_, record_);
  EXPECT_EQ(result.total.si, 1100);
  EXPECT_EQ(result.steps, 100'000);
  EXPECT_EQ(result.step_mean.si, 0.01);
  EXPECT_DOUBLE_EQ(result.sampling_interval_s.low, 1060);
  EXPECT_DOUBLE_EQ(result.interval_s.low, 1100 - 50 - 5);
  EXPECT_DOUBLE_EQ(result.interval_s.high, 1100 + 85);  // 75 and 40 in quadrature
  EXPECT_FALSE(result.met);
  ASSERT_EQ(result.pools.size(), 1U);
  EXPECT_EQ(result.pools[0].usd, result.bill.total());
  EXPECT_LT(result.cost_usd.low, 1.7);
  EXPECT_GT(result.cost_usd.high, 1.7);
}

}  // namespace
}  // namespace ganymede::sim
