// Bills that are calculated by hand to the micro-dollar: the made-up GAN on one node with steps of 10 ms and a boot of
// 90 s, so that a run of N steps takes 90 s + N x 10 ms.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;
constexpr std::int64_t kHourSteps = 351'000;  ///< steps of a run of one hour

/// One node of "one" (3.60 USD/h) for so many steps, on the made-up platform with some of its values replaced.
class Bills : public testing::Test {
 protected:
  Json platform = Json::parse(made_up_platform());
  Json scenario = ScenarioFiles::with("/platform/nodes", 1);

  Bills() {
    scenario["workload"]["steps"] = kHourSteps;
    platform["billing"] = {{"granularity", "1s"}};
  }
  Scenario load() const {
    files_.folder().add("lab.json", platform.dump());
    return files_.load(scenario);
  }
  Json run() const { return simulate_json(load()); }
  Json bill() const { return run()["cost"]; }
  std::string error() const {
    return message_of<ConfigError>([this] { load(); });
  }

 private:
  ScenarioFiles files_;
};

std::int64_t micro_dollars(const Json& text) { return std::llround(std::stod(text.get<std::string>()) * 1e6); }

/// The cost of all items of that name; `quantity` gets the sum of their quantities.
std::string item(const Json& bill, const std::string& name, double* quantity = nullptr) {
  MicroUsd sum;
  for (const Json& line : bill["items"])
    if (line["item"] == name) {
      sum += {micro_dollars(line["usd"])};
      if (quantity) *quantity += line["quantity"].get<double>();
    }
  return decimal(sum);
}

void expect_sums(const Json& bill) {
  std::int64_t items = 0, hours = 0, uses = 0;
  for (const Json& line : bill["items"]) {
    items += micro_dollars(line["usd"]);
    if (line["item"].get<std::string>().starts_with("instance-hours")) hours += micro_dollars(line["usd"]);
  }
  for (const Json& use : bill["instance_hours_by_use"]) uses += micro_dollars(use);
  EXPECT_EQ(items, micro_dollars(bill["total_usd"]));
  EXPECT_EQ(uses, hours);
}

// 10 s of boot-less training are billed as 60 s: 60 / 3600 x 3.60 = 0.06 USD, of which 50 s were not used.
TEST_F(Bills, BySecondsWithAMinimum) {
  platform["provisioning"]["boot"] = "0s";
  platform["billing"] = {{"granularity", "1s"}, {"minimum", "60s"}};
  scenario["workload"]["steps"] = 1000;
  const Json cost = bill();
  EXPECT_EQ(cost["total_usd"], "0.06");
  EXPECT_EQ(cost["instance_hours_by_use"]["minimum_and_rounding"], "0.05");
  expect_sums(cost);
}

// 100 s, billed by the hour: a whole hour of each of two nodes.
TEST_F(Bills, ByTheHourRoundedUp) {
  platform["billing"]["granularity"] = "1h";
  scenario["platform"]["nodes"] = 2;
  scenario["workload"]["steps"] = 1000;
  const Json cost = bill();
  EXPECT_EQ(cost["total_usd"], "7.20");
  EXPECT_EQ(cost["items"][0]["quantity"], 2.0);
  expect_sums(cost);
}

// Spot at 0.90 USD/h = 250 micro-dollars a second. Nodes are taken back 30 s after the notices at 600 s and 1800 s,
// when the next node is requested. Each time all training is lost, so nodes live 630, 1230 and 90 + 3510 s.
TEST_F(Bills, SpotWithTwoInterruptions) {
  scenario["platform"] = {{"catalog", "lab.json"}, {"region", "room-2"}, {"instance", "one"}, {"market", "spot"}};
  scenario["platform"]["spot"] = "uninterrupted";  // but for the events
  scenario["faults"]["events"] = {{{"at", "600s"}, {"kind", "interruption"}},
                                  {{"at", "1800s"}, {"kind", "interruption"}}};
  const Json result = run();
  EXPECT_NEAR(result["time"]["total_s"].get<double>(), 1800 + 90 + 3510, 1e-6);
  EXPECT_EQ(result["cost"]["total_usd"], decimal(MicroUsd{250 * (630 + 1230 + 90 + 3510)}));
  // The lost training: 540 s of the first node, and 1140 s of the second, which was ready at 690 s.
  EXPECT_EQ(result["cost"]["instance_hours_by_use"]["lost"], decimal(MicroUsd{250 * (540 + 1140)}));
  expect_sums(result["cost"]);

  // A provider that does not charge for nodes that it takes back within the first hour charges only the third node.
  platform["billing"]["free_if_interrupted_within"] = "1h";
  const Json free = run();
  EXPECT_EQ(free["cost"]["total_usd"], decimal(MicroUsd{250 * (90 + 3510)}));
  EXPECT_THAT(free["provenance"]["warnings"].dump(), HasSubstr("0.517 node-hours"));  // 630 s and 1230 s
  // All three nodes booted for 90 s of the 630 + 1230 + 3600 s that they were held.
  EXPECT_EQ(free["cost"]["instance_hours_by_use"]["provisioning"],
            decimal(MicroUsd{std::llround(250.0 * 3600 * 270 / 5460)}));
  expect_sums(free["cost"]);
}

// Two zones exchange the sums of 16 MB of gradients in each step, and each zone sends them once: 32 GB in 1000 steps,
// charged both to the sender and to the receiver.
TEST_F(Bills, EgressBetweenZones) {
  platform["transfer"] = {{"zone", "0.01USD"}};
  const auto pool = [](const char* zone) {
    return Json{{"catalog", "lab.json"}, {"region", "room-1"}, {"zone", zone}, {"instance", "one"}};
  };
  scenario["workload"]["steps"] = 1000;
  scenario["platform"] = {
      {"pools", {pool("a"), pool("b")}},
      {"links",
       {{{"between", {"one a on-demand", "one b on-demand"}}, {"bandwidth", "10Gbit/s"}, {"latency", "0.5ms"}}}}};
  const Json cost = bill();
  double gb = 0;
  EXPECT_EQ(item(cost, "data transfer", &gb), "0.64");
  EXPECT_NEAR(gb, 32, 1e-9);
  EXPECT_EQ(cost["items"].back()["pool"], "between zones");
  expect_sums(cost);

  // A provider that charges only the sender.
  platform["transfer"]["zone_charged"] = "once";
  EXPECT_EQ(item(bill(), "data transfer"), "0.32");
}

// A hundredth of a month, 7.3 h = 26,280 s: 26.28 USD of instance; 100 GB at 0.08, 3,000 IOPS at 0.005 and 375 MB/s at
// 0.04 a month.
TEST_F(Bills, ProvisionedIops) {
  platform["storage"]["gp"] = {
      {"read", "125MB/s"},         {"write", "125MB/s"},           {"iops", 3000},
      {"per_gb_month", "0.08USD"}, {"per_iops_month", "0.005USD"}, {"per_mbps_month", "0.04USD"}};
  scenario["storage"]["dataset"] = {{"class", "gp"}, {"size", "100GB"}, {"iops", 6000}, {"throughput", "500MB/s"}};
  scenario["workload"]["dataset"]["bytes_per_image"] = 0;  // reading takes no time
  scenario["workload"]["steps"] = 2'619'000;
  const Json cost = bill();
  EXPECT_EQ(item(cost, "storage"), "0.08");
  EXPECT_EQ(item(cost, "provisioned IOPS"), "0.15");
  EXPECT_EQ(item(cost, "provisioned throughput"), "0.15");
  EXPECT_EQ(cost["total_usd"], "26.66");
  expect_sums(cost);

  platform["storage"]["gp"]["regions"]["room-1"] = {{"per_gb_month", "0.10USD"}};
  EXPECT_EQ(item(bill(), "storage"), "0.10");
}

// 100 s at 2 USD/h; with the whole year of 8,760 h on the bill, 17,520 USD. The bill also has the price of an hour on
// demand.
TEST_F(Bills, Reserved) {
  platform["instances"]["one"]["prices"].push_back(
      {{"region", "room-1"}, {"market", "reserved-1y"}, {"per_hour", "2USD/h"}, {"as_of", "2026-11-01"}});
  scenario["platform"]["market"] = "reserved-1y";
  scenario["workload"]["steps"] = 1000;
  EXPECT_EQ(bill()["total_usd"], "0.055556");
  scenario["billing"]["commitment"] = "whole-term";
  const Json cost = bill();
  EXPECT_EQ(item(cost, "unused commitment"), "17519.944444");
  for (const Json& line : cost["items"]) {
    EXPECT_EQ(line["unit_price_usd"], "2.00");
    EXPECT_EQ(line["list_price_usd"], "3.60");
  }
  EXPECT_EQ(cost["total_usd"], "17520.00");
  expect_sums(cost);
}

// Quarters of a month of 182.5 h at 100, 80, 60 and 40 % of 3.60 USD/h: half a month is 657.00 + 525.60; one month and
// a quarter are 657.00 x (1 + 0.8 + 0.6 + 0.4) + 657.00.
TEST_F(Bills, SustainedUse) {
  platform["instances"]["one"]["sustained_use"] = {1, 0.8, 0.6, 0.4};
  scenario["workload"]["steps"] = 365 * 360'000 - 9'000;
  const Json half = bill();
  EXPECT_EQ(half["total_usd"], "1182.60");
  EXPECT_EQ(item(half, "instance-hours"), "657.00");
  EXPECT_EQ(item(half, "instance-hours at 80 % (sustained use)"), "525.60");
  expect_sums(half);
  scenario["workload"]["steps"] = 9125 * 36'000 - 9'000;
  EXPECT_EQ(bill()["total_usd"], "2496.60");
}

// A node that costs 8,766 USD over a year of 8,766 h and is used for half of it, with 0.10 USD/h of staff: 2.10 USD/h.
// In its hour the GPU is busy for 351,000 x 9 ms = 87.75 %: (50 + 0.8775 x 200) W at PUE 1.5 are 0.33825 kWh, at 0.20
// USD each.
TEST_F(Bills, PrivateWithPower) {
  platform["instances"]["one"]["prices"][0] = {
      {"region", "room-1"},
      {"market", "on-demand"},
      {"as_of", "2026-11-01"},
      {"ownership", {{"capital", "8766USD"}, {"life_years", 1}, {"utilization", 0.5}, {"staff", "0.10USD/h"}}}};
  platform["regions"]["room-1"]["per_kwh"] = "0.20USD";
  const Json cost = bill();
  EXPECT_EQ(item(cost, "instance-hours"), "2.10");
  EXPECT_EQ(item(cost, "electricity"), "0.06765");
  EXPECT_EQ(cost["total_usd"], "2.16765");
  expect_sums(cost);
  const char* terms = "8766.00 USD over 1 year at 50 % use, staff 0.10 USD/h, boot 90 s";
  EXPECT_EQ(run()["pools"][0]["owned"], terms);
  EXPECT_THAT(run()["provenance"]["warnings"].dump(), HasSubstr(std::string("if this holds: ") + terms));

  // The host draws 20 W idle and 100 W busy; its 8 vCPUs are busy for 351,000 x 2.25 ms / (8 x 3600 s).
  platform["instances"]["one"]["power"] = {{"idle", "20W"}, {"peak", "100W"}};
  const double host = (20 + 80 * 351'000 * 2.25e-3 / 28'800) * 1.5 / 1000;
  const Json energy = run()["energy"];
  EXPECT_NEAR(energy["host_kwh"].get<double>(), host, 1e-9);
  EXPECT_NEAR(energy["kwh"].get<double>(), 0.33825 + host, 1e-9);
}

// An hour of a node, a control plane and a load balancer.
TEST_F(Bills, KubernetesFee) {
  platform["services"] = {
      {"control_plane", "0.10USD/h"}, {"control_plane_free", "744h"}, {"load_balancer", "0.0225USD/h"}};
  scenario["billing"] = {{"kubernetes", true}, {"load_balancer", true}};
  const Json cost = bill();
  EXPECT_EQ(item(cost, "control plane"), "0.10");
  EXPECT_EQ(item(cost, "load balancer"), "0.0225");
  EXPECT_EQ(cost["total_usd"], "3.7225");
  expect_sums(cost);
  scenario["billing"]["free_tiers"] = true;
  EXPECT_EQ(bill()["total_usd"], "3.6225");
  platform["services"]["control_plane_free"] = "3h";
  scenario["billing"]["idle_tail"] = "730h";
  EXPECT_EQ(item(bill(), "control plane"), "72.70");  // 731 h; three of the first month are free, and the second's one
}

// A slice of four chips is rented as a whole: 8.00 USD for the hour. Three of the chips idle while one trains.
TEST_F(Bills, TpuSlice) {
  platform["gpus"]["GPU-X"]["kind"] = "tpu";
  platform["instances"]["v3-8"] = platform["instances"]["four"];
  platform["instances"]["v3-8"]["prices"][0]["per_hour"] = "8USD/h";
  scenario["platform"]["instance"] = "v3-8";
  scenario["platform"]["gpus_per_node"] = 1;
  const Json cost = bill();
  EXPECT_EQ(cost["total_usd"], "8.00");
  EXPECT_EQ(cost["instance_hours_by_use"]["idle"], "5.85");
  expect_sums(cost);
}

// 100 s of training and 600 s of waiting at 0.001 USD/s each.
TEST_F(Bills, IdleTail) {
  scenario["workload"]["steps"] = 1000;
  scenario["billing"]["idle_tail"] = "10min";
  const Json result = run();
  EXPECT_EQ(result["cost"]["total_usd"], "0.70");
  EXPECT_EQ(result["cost"]["instance_hours_by_use"]["idle_tail"], "0.60");
  EXPECT_EQ(result["cost"]["instance_hours_by_use"]["provisioning"], "0.09");
  EXPECT_NEAR(result["time"]["total_s"].get<double>(), 100, 1e-6);
  EXPECT_NEAR(result["gpu_seconds"]["total"].get<double>(), 700, 1e-6);
  expect_sums(result["cost"]);
}

// Boot takes 90 of the 100 s; the queue before it takes another 50 s.
TEST_F(Bills, TheMeterStartsWhereTheProviderSays) {
  scenario["workload"]["steps"] = 1000;
  scenario["provisioning"]["queue"] = "50s";
  for (const auto& [start, usd] : {std::pair{"request", "0.15"}, {"boot", "0.10"}, {"ready", "0.01"}}) {
    platform["billing"]["starts"] = start;
    const Json cost = bill();
    EXPECT_EQ(cost["total_usd"], usd) << start;
    expect_sums(cost);
  }
}

// Boot takes 90 s, the image another 60, training 10: a meter that starts once the host runs counts 70 s at 0.001 USD.
TEST_F(Bills, AReadyHostIsPaidForWhileItPullsTheImage) {
  scenario["workload"]["steps"] = 1000;
  scenario["provisioning"]["image_pull"] = "60s";
  platform["billing"]["starts"] = "ready";
  const Json cost = bill();
  EXPECT_EQ(cost["total_usd"], "0.07");
  EXPECT_EQ(cost["instance_hours_by_use"]["provisioning"], "0.06");
  expect_sums(cost);
}

// Steps of 10 ms for 500 h, with 90 s of boot included: rounding errors of the sum of steps must not add a second or an
// hour.
TEST_F(Bills, WholeHoursAreBilledAsSuch) {
  scenario["workload"]["steps"] = 500 * 360'000 - 9'000;
  for (const char* granularity : {"1s", "1h"}) {
    platform["billing"]["granularity"] = granularity;
    EXPECT_EQ(bill()["total_usd"], "1800.00") << granularity;
  }
}

// 300 GB to the internet cost 100 x 0.09 + 150 x 0.08 + 50 x 0.05 USD; with the first 100 GB free, 100 x 0.09 + 100 x
// 0.08.
TEST_F(Bills, DataToTheInternetByTiers) {
  platform["transfer"]["internet"] = {
      {{"up_to_gb", 100}, {"per_gb", "0.09USD"}}, {{"up_to_gb", 250}, {"per_gb", "0.08USD"}}, {{"per_gb", "0.05USD"}}};
  platform["transfer"]["free_gb_month"] = 100;
  scenario["billing"]["download"] = "300GB";
  EXPECT_EQ(item(bill(), "data transfer"), "23.50");
  scenario["billing"]["free_tiers"] = true;
  EXPECT_EQ(item(bill(), "data transfer"), "17.00");

  // Priced by the GiB without a free part: 300 GiB.
  platform["transfer"]["internet"] = {{{"up_to_gib", 100}, {"per_gib", "0.09USD"}}, {{"per_gib", "0.05USD"}}};
  scenario["billing"] = {{"download", "300GiB"}};
  const Json cost = bill();
  EXPECT_EQ(item(cost, "data transfer"), "19.00");
  EXPECT_EQ(cost["items"].back()["unit"], "GiB");
}

// A checkpoint of 48 MB is created, written in six parts of 8 MiB and completed; without a cache, each of 1,000 batches
// of 64 images is read from the store with one request for each image.
TEST_F(Bills, RequestsOfAnObjectStore) {
  platform["storage"]["store"] = {{"kind", "object"},       {"read", "1GB/s"},        {"write", "48MB/s"},
                                  {"per_gb_month", "0USD"}, {"per_1000_put", "5USD"}, {"per_1000_get", "0.40USD"}};
  scenario["workload"]["steps"] = 1000;
  scenario["storage"] = {{"dataset", "store"}, {"checkpoint", "store"}, {"cache", "none"}};
  scenario["checkpoint"] = {{"every", "6s"}};
  const Json result = run();
  EXPECT_EQ(item(result["cost"], "read requests"), "25.60");
  double written = 0;
  item(result["cost"], "write requests", &written);
  EXPECT_NEAR(written * 1000, 8 * result["life"]["checkpoints"].get<double>(), 1e-9);
  EXPECT_GE(result["life"]["checkpoints"], 1);

  // A checkpoint that fits into one part takes one request.
  scenario["checkpoint"]["bytes"] = "8MiB";
  const Json small = run();
  written = 0;
  item(small["cost"], "write requests", &written);
  EXPECT_NEAR(written * 1000, small["life"]["checkpoints"].get<double>(), 1e-9);
}

// 730 GB at 3.60 USD a GB-month are 0.001 USD/s. The first node exists from 60 s to 690 s. The next one comes at 720 s,
// after 60 s of queue from the notice at 660 s; a disk that is kept is paid for in between.
TEST_F(Bills, BootDisksOfInterruptedNodes) {
  platform["storage"]["boot"] = {{"read", "1GB/s"}, {"write", "1GB/s"}, {"per_gb_month", "3.60USD"}};
  scenario["platform"] = {{"catalog", "lab.json"}, {"region", "room-2"}, {"instance", "one"}, {"market", "spot"}};
  scenario["platform"]["spot"] = "uninterrupted";  // but for the events
  scenario["provisioning"]["queue"] = "60s";
  scenario["faults"]["events"] = {{{"at", "660s"}, {"kind", "interruption"}}};
  scenario["billing"]["boot_disk"] = {{"class", "boot"}, {"size", "730GB"}};
  EXPECT_EQ(item(bill(), "boot disk"), "4.23");  // 630 s and 3600 s
  scenario["billing"]["boot_disk"]["when_interrupted"] = "kept";
  EXPECT_EQ(item(bill(), "boot disk"), "4.26");
}

// A cap of 75 W leaves an eighth of the power above idle, and with it half of the clock: phases that are limited by
// arithmetic take twice as long, those limited by memory as long as before.
TEST_F(Bills, APowerCapCostsTimeAndSavesEnergy) {
  scenario["power_cap"] = "75W";
  EXPECT_NEAR(run()["time"]["step_mean_s"].get<double>(), 10e-3 + 9e-3, 1e-9);
  platform["gpus"]["GPU-X"]["memory_bandwidth"] = "10GB/s";  // now memory limits every phase
  const Json capped = run();
  scenario.erase("power_cap");
  const Json free = run();
  EXPECT_EQ(capped["time"]["total_s"], free["time"]["total_s"]);
  EXPECT_NEAR(free["energy"]["kwh"].get<double>() / capped["energy"]["kwh"].get<double>(),
              (50 + 0.8775 * 200) / (50 + 0.8775 * 25), 1e-9);
  scenario["power_cap"] = "40W";
  EXPECT_THAT(error(), HasSubstr("/power_cap: found \"40W\", expected more than GPU-X draws when it is idle"));
}

// A policy that changes from spot to on demand stays in its zone and pays the zone's own price if there is one.
TEST_F(Bills, OtherMarketsAreThoseOfTheSameZone) {
  auto& prices = platform["instances"]["one"]["prices"];
  for (const char* zone : {"", "z1", "z2"}) {
    Json price = {{"region", "room-1"}, {"market", "spot"}, {"per_hour", "1USD/h"}, {"as_of", "undated"}};
    if (*zone != 0) price["zone"] = zone;
    if (std::string_view(zone) == "z1") price["per_hour"] = "0.75USD/h";
    prices.push_back(price);
  }
  scenario["platform"]["zone"] = "z1";
  scenario["policy"]["name"] = "spot-first";
  const Scenario offered = load();
  ASSERT_EQ(offered.pools.size(), 2U);
  EXPECT_EQ(offered.pools[1].zone, "z1");
  EXPECT_EQ(offered.pools[1].name, "one z1 spot");
  EXPECT_EQ(offered.pools[1].price.per_hour.value, 750'000);
  EXPECT_TRUE(offered.links.empty());
}

TEST_F(Bills, RefuseWhatThePlatformDoesNotSell) {
  scenario["billing"]["kubernetes"] = true;
  EXPECT_THAT(error(), HasSubstr("/billing/kubernetes: no price is known of a managed cluster"));
  scenario["billing"] = {{"download", "1GB"}};
  EXPECT_THAT(error(), HasSubstr("/billing/download: no price is known"));
  scenario["billing"] = {{"commitment", "whole-term"}};
  EXPECT_THAT(error(), HasSubstr("/billing/commitment: nothing is reserved"));
  scenario.erase("billing");
  scenario["storage"]["dataset"] = {{"class", "slow"}, {"iops", 5000}};
  EXPECT_THAT(error(), HasSubstr("/storage/dataset/iops: the catalog lab sells no more than 1000 IOPS of slow"));
}

}  // namespace
}  // namespace ganymede::sim
