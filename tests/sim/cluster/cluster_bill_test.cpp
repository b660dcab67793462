// The bill of a cluster: by hand, and against the bills of runs, which have the same ledger.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "clusters.hpp"
#include "common/errors.hpp"
#include "common/usd.hpp"
#include "sim/run/simulate.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

/// The made-up platform without a boot, whose region sells electricity at 0.20 USD/kWh; a file system and an object
/// store that cost something; and "four" on two more markets.
Json priced_platform() {
  Json platform = Json::parse(made_up_platform());
  platform["provisioning"]["boot"] = "0s";
  platform["regions"]["room-1"]["per_kwh"] = "0.20USD";
  for (const char* name : {"one", "four"}) platform["instances"][name]["power"] = {{"idle", "100W"}, {"peak", "300W"}};
  platform["storage"]["files"] = {{"read", "96MB/s"}, {"write", "48MB/s"}, {"per_gib_month", "0.30USD"}};
  platform["storage"]["volume"] = {
      {"read", "96MB/s"}, {"write", "48MB/s"}, {"per_gib_month", "0.10USD"}, {"each_node", true}};
  platform["storage"]["bucket"] = {{"kind", "object"},          {"read", "1GB/s"},        {"write", "48MB/s"},
                                   {"per_gb_month", "0.02USD"}, {"per_1000_put", "5USD"}, {"per_1000_get", "0.40USD"}};
  platform["transfer"] = {{"internet", {{{"up_to_gb", 50}, {"per_gb", "0.09USD"}}, {{"per_gb", "0.05USD"}}}},
                          {"free_gb_month", 10}};
  platform["services"] = {{"control_plane", "0.10USD/h"}, {"load_balancer", "0.02USD/h"}};
  Json& prices = platform["instances"]["four"]["prices"];
  prices.push_back({{"region", "room-1"}, {"market", "reserved-1y"}, {"per_hour", "7.20USD/h"}, {"as_of", "undated"}});
  platform["instances"]["four"]["sustained_use"] = {1, 0.8, 0.6, 0.4};
  return platform;
}

std::map<std::string, double> items_of(const Json& result) {
  std::map<std::string, double> sums;
  for (const Json& item : result["cost"]["items"])
    sums[item["item"].get<std::string>()] += item["usd_number"].get<double>();
  return sums;
}

// ---- by hand ----

/// Two nodes of four GPUs with hosts of 100 to 300 W, of which a timed job holds `gpus` for `hours`.
Json with_electricity(int gpus, double hours) {
  Json document = cluster_of(Json::array({timed("a", 0, gpus, hours * 3600)}));
  document["platform"]["catalog"] = priced_platform();
  document["platform"]["region"] = "room-1";
  return document;
}

// Eight GPUs of 250 W and two hosts of 300 W for ten hours, and half as much for the building: 39 kWh at 0.20 USD. With
// half of the GPUs, those of one node, the other node draws 4 x 50 W and 100 W.
TEST(ClusterBill, HoldsElectricity) {
  Json result = result_of(with_electricity(8, 10));
  EXPECT_NEAR(result["energy"]["kwh"].get<double>(), 10 * (8 * 0.25 + 2 * 0.3) * 1.5, 1e-9);
  EXPECT_NEAR(items_of(result)["electricity"], 39 * 0.20, 1e-6);
  result = result_of(with_electricity(4, 10));
  EXPECT_NEAR(items_of(result)["electricity"], 10 * (4 * 0.25 + 0.3 + 4 * 0.05 + 0.1) * 1.5 * 0.20, 1e-6);
}

// Sustained use discounts nodes on demand, and not those that are reserved: two nodes for 730 h, at 10.80 USD less a
// mean of 30 %, or at 7.20 USD.
TEST(ClusterBill, DiscountsSustainedUseOnDemandOnly) {
  Json document = with_electricity(8, 730);
  const auto hours = [&] {
    double sum = 0;
    for (const auto& [item, usd] : items_of(result_of(document)))
      if (item.starts_with("instance-hours")) sum += usd;
    return sum;
  };
  EXPECT_NEAR(hours(), 2 * 730 * 10.80 * 0.7, 1e-5);
  document["platform"]["market"] = "reserved-1y";
  EXPECT_NEAR(hours(), 2 * 730 * 7.20, 1e-5);
  document["billing"] = {{"commitment", "whole-term"}};
  EXPECT_NEAR(items_of(result_of(document))["unused commitment"], 2 * (8760 - 730) * 7.20, 1e-5);
}

// Two workloads read from one file system, which holds the datasets of both, 12,800 images of 10 kB each, for as long
// as the cluster lives; each job keeps its own checkpoint of 48 MB in the object store for its own time.
TEST(ClusterBill, HoldsTheStorageOfAllWorkloads) {
  const TemporaryFolder folder;
  Json document = reading(folder, {640, 640}, "files", "memory");
  document["platform"]["catalog"] = priced_platform();
  document["workloads"]["gan-1"]["workload"]["dataset"]["name"] = "y";
  for (const char* name : {"gan-0", "gan-1"}) {
    document["workloads"][name]["storage"]["checkpoint"] = "bucket";
    document["workloads"][name]["checkpoint"] = {{"every", "1epoch"}};
  }
  const Json result = result_of(document);
  const double months = result["summary"]["total_s"].get<double>() / 3600 / 730;
  std::map<std::string, double> storage;
  for (const Json& item : result["cost"]["items"])
    if (item["item"] == "storage") storage[item["pool"].get<std::string>()] = item["quantity"].get<double>();
  EXPECT_NEAR(storage["files (dataset of gan-0, gan-1)"], std::ceil(2 * 12800 * 1e4 / 1073741824) * months, 1e-12);
  for (const int job : {0, 1}) {
    const double own = (end_of(result, 0) - start_of(result, 0)) / 3600 / 730;
    EXPECT_NEAR(storage[fmt::format("bucket (checkpoints of gan-{})", job)], 0.048 * own, 1e-12);
  }
  // Owners and idle time share them as they share the nodes.
  double sum = 0;
  for (const Json& owner : result["owners"]) sum += owner["usd_number"].get<double>();
  EXPECT_NEAR(sum, std::stod(result["cost"]["total_usd"].get<std::string>()), 1e-9);
}

TEST(ClusterBill, CountsFromTheFirstArrivalInRecordingsToo) {
  const TemporaryFolder folder;
  // 100 g/kWh in the first hour of the file's clock, 300 g/kWh afterwards.
  folder.add("carbon.csv", "time_s,carbon\n0,100\n3600,300\n");
  Json document = with_electricity(8, 1);
  document["platform"]["carbon"] = (folder / "carbon.csv").string();
  const auto grams = [&] {
    const Json energy = result_of(document)["energy"];
    return energy["kg_co2e"].get<double>() / energy["kwh"].get<double>() * 1000;
  };
  EXPECT_NEAR(grams(), 100, 1e-9);
  document["jobs"][0]["arrival"] = "1800s";
  EXPECT_NEAR(grams(), 200, 1e-9);
}

// One of two nodes trains for 100 s, and both are held for 300 s more: the owner's share is an eighth.
TEST(ClusterBill, TheIdleTailIsNobodys) {
  Json document = with_electricity(4, 100.0 / 3600);
  document["billing"] = {{"idle_tail", "300s"}};
  const Json result = result_of(document);
  const double total = std::stod(result["cost"]["total_usd"].get<std::string>());
  EXPECT_GT(total, 0);
  EXPECT_NEAR(result["owners"][0]["usd_number"].get<double>(), total / 8, 1e-6);
}

TEST(ClusterBill, RefusesChargesThatHaveNoPrice) {
  Json document = cluster_of(Json::array({timed("a", 0, 1, 1)}));
  document["billing"] = {{"kubernetes", true}};
  EXPECT_THAT(message_of<ConfigError>([&] { read(document); }),
              HasSubstr("cluster.json: /billing/kubernetes: no price is known of a managed cluster"));
  document["billing"] = {{"commitment", "whole-term"}};
  EXPECT_THAT(message_of<ConfigError>([&] { read(document); }), HasSubstr("/billing/commitment: nothing is reserved"));
}

// ---- one ledger ----

template <class T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}
bool coin() { return *rc::gen::arbitrary<bool>(); }

Json random_billing(bool reserved) {
  Json billing = Json::object();
  if (coin()) billing["kubernetes"] = true;
  if (coin()) billing["load_balancer"] = true;
  if (coin()) billing["free_tiers"] = true;
  if (coin()) billing["download"] = fmt::format("{}GB", *rc::gen::inRange(1, 200));
  if (coin()) billing["idle_tail"] = fmt::format("{}s", *rc::gen::inRange(0, 1000));
  if (coin()) billing["boot_disk"] = {{"class", "volume"}, {"size", "100GiB"}};
  if (reserved && coin()) billing["commitment"] = "whole-term";
  return billing;
}

/// A training on all GPUs of its nodes whose run is never disturbed.
Json random_scenario(const TemporaryFolder& folder) {
  Json platform = priced_platform();
  platform["billing"] = {{"granularity", any_of({"1s", "60s", "1h"})}, {"minimum", any_of({"0s", "60s"})}};
  if (coin()) platform["instances"]["four"].erase("vcpus");
  if (coin()) platform["regions"]["room-1"].erase("carbon");
  const bool four = coin(), reserved = four && coin();
  Json use = {
      {"catalog", folder.add(fmt::format("lab-{}.json", *rc::gen::inRange(0, 1'000'000)), platform.dump()).string()},
      {"instance", four ? "four" : "one"},
      {"region", "room-1"},
      {"market", reserved ? "reserved-1y" : "on-demand"},
      {"nodes", *rc::gen::inRange(1, 4)}};
  if (four) use["gpus_per_node"] = *rc::gen::inRange(1, 5);
  Json workload = {
      {"trace", "trace.json"},
      {"dataset", {{"name", "x"}, {"images", *rc::gen::inRange(1000, 100'000)}, {"bytes_per_image", 10000}}},
      {"batch_per_gpu", 64}};
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      workload["steps"] = *rc::gen::inRange(1, 2'000'000);
      break;
    case 1:
      workload["epochs"] = *rc::gen::inRange(1, 100);
      break;
    default:
      workload["images"] = *rc::gen::inRange(1, 100'000'000);
  }
  Json scenario = {{"schema", "ganymede.scenario/1"},
                   {"workload", workload},
                   {"platform", use},
                   {"synchronization", {{"scheme", any_of({"ring", "tree", "nccl"})}, {"overlap", coin()}}},
                   {"seed", 1U}};
  if (*rc::gen::inRange(0, 4) == 0)
    scenario["synchronization"] = {{"mode", "async-parameter-server"},
                                   {"scheme", any_of({"parameter-server", "parameter-server:dedicated"})}};
  scenario["storage"] = Json::object();
  if (coin())
    scenario["storage"] = {{"dataset", any_of({"files", "volume", "bucket"})}, {"cache", any_of({"memory", "none"})}};
  if (coin()) scenario["storage"]["checkpoint"] = any_of({"files", "volume", "bucket"});
  if (coin()) scenario["checkpoint"] = {{"every", any_of({"1min", "25min", "2h", "1epoch", "3epoch", "daly"})}};
  if (coin()) scenario["billing"] = random_billing(reserved);
  return scenario;
}

/// The same training as the only job of a cluster.
Json as_cluster(const Json& scenario, int gpus) {
  Json workload = Json::object();
  for (const char* key : {"workload", "synchronization", "storage", "checkpoint"})
    if (scenario.contains(key)) workload[key] = scenario[key];
  Json cluster = {{"schema", "ganymede.cluster/1"},
                  {"platform", scenario["platform"]},
                  {"workloads", {{"gan", workload}}},
                  {"jobs", {{{"name", "a"}, {"gpus", gpus}, {"workload", "gan"}, {"arrival", any_of({"0s", "777s"})}}}},
                  {"seed", 1U}};
  if (scenario.contains("billing")) cluster["billing"] = scenario["billing"];
  return cluster;
}

/// What a line of a bill says; stores of a cluster are called by the workloads that use them.
std::vector<std::string> lines_of(const Bill& bill) {
  std::vector<std::string> lines;
  for (const BillItem& item : bill.items)
    lines.push_back(fmt::format("{} {}: {} {} at {} USD, {} USD", item.item, item.pool.substr(0, item.pool.find(" (")),
                                item.quantity, item.unit, decimal(item.unit_price), decimal(item.usd)));
  return lines;
}

// RC_PARAMS="max_success=1000" tries more of them.
RC_GTEST_PROP(ClusterBill, OfOneJobIsThatOfItsRunToTheLastBit, ()) {
  static const TemporaryFolder kFolder;
  // Steps do not vary, because a run and a cluster each draw a sample of their own of steps that do.
  static const auto kTrace = kFolder.add("trace.json", traces::write_step_trace(constant_trace(1)));
  const Json document = random_scenario(kFolder);
  const Scenario scenario = read_scenario(JsonNode::wrap(document, "scenario.json", kFolder.path()));
  const Cluster cluster = read(as_cluster(document, scenario.workers()), kFolder.path());
  const Result run = simulate(scenario);
  const ClusterRecord record = simulate_cluster(cluster);
  const ClusterCosts costs = cluster_costs(cluster, record);
  RC_LOG() << document.dump(2) << '\n';
  RC_ASSERT(record.span_s() == run.total.si);
  RC_ASSERT(record.jobs[0].checkpoints == run.checkpoints);
  const double held_s = run.gpu_seconds.total - run.gpu_seconds.seconds(GpuUse::idle);  // two rounded sums
  RC_ASSERT(std::abs(record.jobs[0].held_gpu_s - held_s) <= 1e-12 * held_s);
  RC_ASSERT(lines_of(costs.bill.bill) == lines_of(run.bill));
  RC_ASSERT(costs.bill.bill.total() == run.bill.total());
  RC_ASSERT(costs.energy.total.has_value() == run.energy.has_value());
  if (!run.energy) return;
  RC_ASSERT(costs.energy.total->kwh == run.energy->kwh);
  RC_ASSERT(costs.energy.total->kg_co2e == run.energy->kg_co2e);
}

}  // namespace
}  // namespace ganymede::sim
