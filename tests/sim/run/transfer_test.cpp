// What data between the places of a run costs: which links carry it, and the tiers of what leaves a cloud.

#include <gtest/gtest.h>

#include "common/units.hpp"
#include "run_literals.hpp"
#include "scenario_files.hpp"
#include "sim/run/run_bill.hpp"

namespace ganymede::sim {
namespace {

class Transfers : public testing::Test {
 protected:
  /// A node of "one" in each of the zones a, b, ...; a link between any two, at `usd_per_gb(i, j)`.
  template <class Price>
  static Json zones(std::size_t count, Price usd_per_gb) {
    Json content = ScenarioFiles::basic();
    Json pools = Json::array(), links = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      pools.push_back(
          {{"catalog", "lab.json"}, {"region", "room-1"}, {"zone", name}, {"instance", "one"}, {"name", name}});
      for (std::size_t j = 0; j < i; ++j)
        links.push_back({{"between", {pools[j]["name"], name}},
                         {"bandwidth", "10Gbit/s"},
                         {"latency", "0.5ms"},
                         {"usd_per_gb", usd_per_gb(j, i)}});
    }
    content["platform"] = {{"pools", pools}, {"links", links}};
    return content;
  }
  double transfer_usd(const Json& content, const char* unit = "GB") const {
    double sum = 0;
    for (const BillItem& item : simulate(files_.load(content)).bill.items)
      if (item.item == "data transfer") {
        EXPECT_EQ(item.unit, unit);
        sum += static_cast<double>(item.usd.value) * 1e-6;
      }
    return sum;
  }
  ScenarioFiles files_;
};

bool neighbours(std::size_t a, std::size_t b, std::size_t count) { return b - a == 1 || b - a == count - 1; }

// The sums of 16 MB go around a ring: in each of 1,000 steps every place sends 2 (n - 1) / n of them to the next one.
TEST_F(Transfers, ArePaidOnTheLinksOfTheRing) {
  for (const std::size_t count : {2U, 3U, 4U, 5U}) {
    const auto on_ring = [&](std::size_t a, std::size_t b) { return neighbours(a, b, count) ? 0.03 : 0; };
    const auto across = [&](std::size_t a, std::size_t b) { return neighbours(a, b, count) ? 0 : 0.03; };
    EXPECT_NEAR(transfer_usd(zones(count, on_ring)), 2.0 * static_cast<double>(count - 1) * 16 * 0.03, 1e-6) << count;
    EXPECT_EQ(transfer_usd(zones(count, across)), 0) << count;
  }
  // One dear link of four carries a quarter of the six 16 MB.
  const auto one_dear = [](std::size_t a, std::size_t b) { return a == 0 && b == 3 ? 0.12 : 0.01; };
  EXPECT_NEAR(transfer_usd(zones(4, one_dear)), 6.0 * 16 / 4 * (0.12 + 3 * 0.01), 1e-6);
}

// Four workers that average with the next and the previous one in turn: each of the four pairs exchanges 16 MB both
// ways in half of the steps. If each of them serves a quarter of the weights, each sends every other one its part of
// that one's weights and its gradients of that one's part, 4 MB each.
TEST_F(Transfers, FollowGossipAndServers) {
  Json content = zones(4, [](std::size_t a, std::size_t b) { return neighbours(a, b, 4) ? 0.03 : 100; });
  content["synchronization"]["mode"] = "gossip";
  EXPECT_NEAR(transfer_usd(content), 4 * 16 * 0.03, 1e-6);
  content = zones(4, [](std::size_t a, std::size_t) { return a == 0 ? 0.03 : 0.01; });
  content["synchronization"] = {{"scheme", "parameter-server"}, {"mode", "async-parameter-server"}};
  EXPECT_NEAR(transfer_usd(content), 2 * 8 * (3 * 0.03 + 3 * 0.01), 1e-6);
}

/// Two places in two clouds, with tiers of 10,000, 40,000 and further GB at 0.09, 0.085 and 0.07 USD.
class BetweenClouds : public Transfers {
 protected:
  BetweenClouds() {
    Json content = zones(2, [](std::size_t, std::size_t) { return 0; });
    content["platform"]["links"][0].erase("usd_per_gb");
    for (const std::size_t pool : {0U, 1U}) {
      Json platform = Json::parse(made_up_platform());
      platform["provider"] = pool == 0 ? "aws" : "gcp";
      platform["transfer"] = {{"internet",
                               {{{"up_to_gb", 10'000}, {"per_gb", "0.09USD"}},
                                {{"up_to_gb", 50'000}, {"per_gb", "0.085USD"}},
                                {{"per_gb", "0.07USD"}}}},
                              {"free_gb_month", 100}};
      const std::string name = pool == 0 ? "one.json" : "other.json";
      files_.folder().add(name, platform.dump());
      content["platform"]["pools"][pool]["catalog"] = name;
    }
    scenario_ = files_.load(content);
    record_.ledgers.resize(2);
    record_.device_s = {0, 0};
    record_.end = 100 * 3600 * kSecond;
  }
  double usd() const {
    RunEnergy energy;
    energy.pools.resize(2);
    double sum = 0;
    for (const BillItem& item : bill_of(scenario_, record_, energy).bill.items)
      if (item.item == "data transfer") sum += static_cast<double>(item.usd.value) * 1e-6;
    return sum;
  }
  Scenario scenario_;
  RunRecord record_;
};

TEST_F(BetweenClouds, TiersAreReachedByAllTrafficOfAMonth) {
  record_.totals.between = {{{0, 1}, 120e12}, {{1, 0}, 5e12}};
  const double below = 10'000 * 0.09, middle = 40'000 * 0.085;
  EXPECT_NEAR(usd(), below + middle + 70'000 * 0.07 + 5'000 * 0.09, 1e-6);
  // Over two months each sees half of it, and a download at the end of the second meets its last tier.
  record_.end = 2 * 730 * 3600 * kSecond;
  EXPECT_NEAR(usd(), 2 * (below + middle + 10'000 * 0.07) + 5'000 * 0.09, 1e-6);
  scenario_.charges.download = Bytes{1e12};
  EXPECT_NEAR(usd(), 2 * (below + middle + 10'000 * 0.07) + 5'000 * 0.09 + 1'000 * 0.07, 1e-6);
  // 100 GB of each month and provider are free.
  scenario_.charges.free_tiers = true;
  EXPECT_NEAR(usd(), 2 * (below + middle + 9'900 * 0.07) + 4'800 * 0.09 + 1'000 * 0.07, 1e-6);
}

// A dataset that a policy moved goes the same way.
TEST_F(BetweenClouds, MovedDataCounts) {
  record_.totals.between = {{{0, 1}, 9e12}};
  record_.moved = {{{0, 1}, 2e12}};
  EXPECT_NEAR(usd(), 10'000 * 0.09 + 1'000 * 0.085, 1e-6);
}

TEST_F(BetweenClouds, AStatedPriceReplacesTheTiers) {
  record_.totals.between = {{{0, 1}, 120e12}};
  scenario_.links[0].by_tiers = false;
  scenario_.links[0].usd_per_gb = 0.01;
  EXPECT_NEAR(usd(), 1'200, 1e-6);
}

}  // namespace
}  // namespace ganymede::sim
