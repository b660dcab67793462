#include "sim/run/capacity.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "sim/run/scenario_files.hpp"
#include "sim/run/simulate.hpp"
#include "support/errors.hpp"
#include "support/when.hpp"

namespace ganymede::sim {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Nanoseconds kHour = static_cast<Nanoseconds>(3600) * 1'000'000'000;

/// One V100 of AWS on spot that trains for `hours` and keeps a checkpoint every ten minutes.
Json on_spot(double hours = 24) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}, {"market", "spot"}};
  content["storage"] = {{"checkpoint", "s3"}};
  content["checkpoint"] = {{"every", "10min"}};
  content["workload"]["steps"] = static_cast<std::int64_t>(hours * 3600 / 10e-3);
  return content;
}

class SpotCapacity : public testing::Test {
 protected:
  Scenario load(const Json& content) const { return files_.load(content); }
  /// Spot pools of one V100 in each of one or two places ("us-east-1a").
  Scenario in_places(const std::vector<std::string>& places) const {
    Json content = on_spot(), pools, link = {{"bandwidth", "10Gbit/s"}, {"latency", "1ms"}};
    for (const std::string& place : places) {
      pools.push_back(content["platform"]);
      pools.back().update({{"name", place}, {"zone", place}, {"region", place.substr(0, 9)}, {"nodes", 1}});
      link["between"].push_back(place);
    }
    content["platform"] = {{"pools", pools}, {"links", places.size() == 2 ? Json{link} : Json::array()}};
    return load(content);
  }
  Json run(const Json& content) const { return simulate_json(load(content)); }
  std::string error(const Json& content) const {
    return message_of<ConfigError>([&] { load(content); });
  }
  std::string warnings(const Json& result) const { return result["provenance"]["warnings"].dump(); }

  ScenarioFiles files_;
};

// A zone that is up for 2.423 h on average and for 66.22 % of the time. Over many seeds, the share of up-time at the
// start and over all hours must be that share, and the hours held divided by the losses must be that mean.
TEST_F(SpotCapacity, IsUpAsOftenAndAsLongAsThePresetSays) {
  Json content = on_spot();
  content["platform"]["spot"] = "typical";
  Scenario scenario = load(content);
  const platforms::SpotClass& of = platforms::spot_model().of("V100");
  double at_start = 0, up_h = 0, all_h = 0, ends = 0;
  constexpr int kSeeds = 3000;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    set_seed(scenario, static_cast<std::uint64_t>(seed));
    Capacity capacity(scenario, scenario.pools[0]);
    capacity.raise_demand(1);
    at_start += capacity.at(0) / kSeeds;
    for (Nanoseconds now = 0; now < 200 * kHour;) {
      const Nanoseconds next = std::min<Nanoseconds>(capacity.next_after(now), 200 * kHour);
      const double length_h = static_cast<double>(next - now) / kHour;
      all_h += length_h;
      if (capacity.at(now) == 1) {
        up_h += length_h;
        ends += capacity.at(next) == 0 ? 1 : 0;
      }
      now = next;
    }
  }
  EXPECT_NEAR(at_start, of.availability, 4 * std::sqrt(0.25 / kSeeds));
  EXPECT_NEAR(up_h / all_h, of.availability, 0.02);
  EXPECT_NEAR(up_h / ends, of.mean_up.si / 3600, 0.05 * of.mean_up.si / 3600);
}

// The capacity at a given time is the same in whatever order times are asked for.
TEST_F(SpotCapacity, StaysWhatItWasOnceItWasDrawn) {
  const Scenario scenario = load(on_spot());
  Capacity forth(scenario, scenario.pools[0]), back(scenario, scenario.pools[0]);
  forth.raise_demand(1), back.raise_demand(1);
  std::vector<double> seen;
  for (int hour = 0; hour < 300; ++hour) seen.push_back(forth.at(hour * kHour));
  for (int hour = 299; hour >= 0; --hour) EXPECT_EQ(back.at(hour * kHour), seen[static_cast<std::size_t>(hour)]);
}

// Each of two nodes follows a common state with probability `together`, else its own state, so the correlation of the
// two is `together` squared. A higher demand must not make nodes easier to get.
TEST_F(SpotCapacity, OfSeveralNodesComesAndGoesPartlyTogether) {
  Json content = on_spot();
  content["platform"]["spot"] = "typical";
  content["platform"]["max_nodes"] = 300;
  Scenario scenario = load(content);
  double both = 0, one = 0;
  constexpr int kSeeds = 6000;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    set_seed(scenario, static_cast<std::uint64_t>(seed));
    Capacity capacity(scenario, scenario.pools[0]);
    capacity.raise_demand(2);
    one += capacity.at(kHour) / 2 / kSeeds;
    both += (capacity.at(kHour) == 2 ? 1.0 : 0.0) / kSeeds;
    capacity.raise_demand(300);
    EXPECT_LE(capacity.at(kHour), 300);
  }
  const double share = platforms::spot_model().of("V100").availability;
  EXPECT_NEAR(one, share, 0.025);
  EXPECT_NEAR((both - share * share) / (share * (1 - share)),
              platforms::spot_model().together * platforms::spot_model().together, 0.06);
}

// Two hosts of a marketplace are lost one by one: both are up as often as chance has it. What is assumed of bids is
// said.
TEST_F(SpotCapacity, OfHostsThatTakeBidsComesAndGoesApart) {
  Json content = on_spot();
  content["platform"]["spot"] = "typical";
  content["platform"]["max_nodes"] = 2;
  Scenario scenario = load(content);
  platforms::Platform market = *scenario.pools[0].platform;
  market.provider = "vast";
  scenario.pools[0].platform = std::make_shared<platforms::Platform>(market);
  double both = 0;
  constexpr int kSeeds = 6000;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    set_seed(scenario, static_cast<std::uint64_t>(seed));
    Capacity capacity(scenario, scenario.pools[0]);
    capacity.raise_demand(2);
    both += (capacity.at(kHour) == 2 ? 1.0 : 0.0) / kSeeds;
  }
  const double share = platforms::spot_model().of("V100").availability;
  EXPECT_NEAR(both, share * share, 0.025);
}

/// Nodes that can be held at each of the first hundred hours.
std::vector<double> hours_of(const Scenario& scenario, std::size_t pool) {
  std::vector<double> hours;
  Capacity capacity(scenario, scenario.pools.at(pool));
  capacity.raise_demand(1);
  for (int hour = 0; hour < 100; ++hour) hours.push_back(capacity.at(hour * kHour));
  return hours;
}

// With equal means, nodes of two zones correlate by 0.57 (tools/fit_spot.py); the recorded zones' means differ.
TEST_F(SpotCapacity, OfZonesOfARegionComesAndGoesTogether) {
  Scenario scenario = in_places({"us-east-1a", "us-east-1b"});
  double one = 0, other = 0, both = 0;
  for (ScenarioPool& pool : scenario.pools) pool.spot = Spot::typical;
  constexpr std::uint64_t kSeeds = 2000;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    set_seed(scenario, seed);
    const auto a = hours_of(scenario, 0), b = hours_of(scenario, 1);
    for (const std::size_t at : {0U, 40U})
      one += a[at] / 2 / kSeeds, other += b[at] / 2 / kSeeds, both += a[at] * b[at] / 2 / kSeeds;
  }
  const double share = platforms::spot_model().of("V100").availability;
  EXPECT_NEAR(std::max(std::abs(one - share), std::abs(other - share)), 0, 0.03);
  EXPECT_NEAR((both - share * share) / (share * (1 - share)), 0.57, 0.06);
}

// A pool that has no other of its region draws what it draws alone. Of several, zones are alike, the first as if alone.
TEST_F(SpotCapacity, OfAZoneAloneIsDrawnAsEver) {
  double product = 0;
  Scenario alone = in_places({"us-east-1a"}), near = in_places({"us-east-1a", "us-east-1b"}),
           far = in_places({"us-west-2a", "us-east-1a"});
  constexpr std::uint64_t kSeeds = 2000;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (Scenario* one : {&alone, &far, &near}) set_seed(*one, seed);
    const auto level = [&](const Scenario& one, std::size_t pool) {
      const auto& of = platforms::spot_model().of("V100");
      return std::log(spot_zone(one, one.pools[pool]).mean_up.si / of.mean_up.si) / of.mean_up_spread;
    };
    EXPECT_EQ(level(near, 0), level(alone, 0));
    EXPECT_EQ(level(far, 1), level(alone, 0));
    product += level(near, 0) * level(near, 1) / kSeeds;
    EXPECT_TRUE(seed > 100 || hours_of(far, 1) == hours_of(alone, 0));
  }
  EXPECT_NEAR(product, platforms::spot_model().alike, 0.1);
}

TEST_F(SpotCapacity, PresetsAreTenthsOfTheZones) {
  const platforms::SpotClass& of = platforms::spot_model().of("V100");
  const double z = 1.2815515655446004;  // the standard normal distribution's 90 % quantile
  for (const auto& [preset, at] : {std::pair{"calm", z}, std::pair{"typical", 0.0}, std::pair{"harsh", -z}}) {
    Json content = on_spot();
    content["platform"]["spot"] = preset;
    const Scenario scenario = load(content);
    const platforms::SpotZone zone = spot_zone(scenario, scenario.pools[0]);
    EXPECT_NEAR(zone.mean_up.si, of.mean_up.si * std::exp(of.mean_up_spread * at), 1e-6 * zone.mean_up.si);
    const double odds = of.availability / (1 - of.availability) * std::exp(of.availability_spread * at);
    EXPECT_NEAR(zone.availability(), odds / (1 + odds), 1e-9);
    // Daly's checkpoint interval is calculated with the same rate.
    EXPECT_NEAR(hazard_rate(scenario, scenario.pools[0]), 1 / zone.mean_up.si, 1e-12);
  }
}

// With 24 h of work, replayed recordings of V100 take 26 to 398 h. In a zone that is up for a share a of the time, a
// long run takes at least 24 / a h; the calm zone is up for 90 % of the time, the harsh one for 28 %.
TEST_F(SpotCapacity, MakesRunsAsLongAsRecordingsDo) {
  NOT_SANITIZED("looks at means of thousands of runs");
  const auto median_h = [&](const Json& content) {
    Scenario scenario = load(content);
    std::vector<double> hours;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      hours.push_back(Json::parse(run_child([&] {
                        return documents::result_text(simulate(with_seed(scenario, seed)));
                      }))["time"]["total_s"]
                          .get<double>() /
                      3600);
    std::sort(hours.begin(), hours.end());
    return std::pair((hours[19] + hours[20]) / 2, hours.back() - hours.front());
  };
  Json content = on_spot();
  content["platform"]["spot"] = "uninterrupted";
  content["workload"]["steps"] = 1'000'000;
  const double a_million_s = number(run(content), "/time/total_s") - number(run(content), "/events/1/at_s");
  content["workload"]["steps"] = static_cast<std::int64_t>(24 * 3600e6 / a_million_s);
  content["platform"].erase("spot");
  const auto [drawn, drawn_width] = median_h(content);
  content["platform"]["spot"] = "calm";
  const auto [calm, calm_width] = median_h(content);
  content["platform"]["spot"] = "harsh";
  const auto [harsh, harsh_width] = median_h(content);
  EXPECT_GT(calm, 24);
  EXPECT_LT(calm, 40);
  EXPECT_GT(drawn, calm);
  EXPECT_GT(harsh, 60);
  EXPECT_GT(harsh, drawn);
  EXPECT_GT(drawn_width, calm_width);
}

TEST_F(SpotCapacity, SaysHowSureTheRiskIs) {
  Json content = on_spot(1);
  const Json drawn = run(content);
  EXPECT_EQ(drawn["provenance"]["risk"], "assumed");
  EXPECT_THAT(warnings(drawn), AllOf(HasSubstr("is assumed: each seed draws a zone"), HasSubstr("of V100"),
                                     HasSubstr("as its price's source says, is not used")));
  content["platform"]["spot"] = "calm";
  EXPECT_EQ(run(content)["provenance"]["risk"], "preset");
  content["platform"]["spot"] = "uninterrupted";
  const Json never = run(content);
  EXPECT_EQ(never["provenance"]["risk"], "stated");
  EXPECT_EQ(never["life"]["losses"], 0);
  EXPECT_THAT(warnings(never), HasSubstr("as its scenario says"));
  files_.folder().add("c.csv", "time_s,nodes\n0,1\n");
  content["platform"]["spot"] = {{"capacity", "c.csv"}};
  EXPECT_EQ(run(content)["provenance"]["risk"], "measured");
  content["platform"].erase("spot");
  content["platform"]["capacity"] = "c.csv";
  EXPECT_EQ(run(content)["provenance"]["risk"], "measured");
  content["platform"].erase("capacity");
  content["platform"]["lifetimes"] = {{"mean", "5000h"}};
  EXPECT_EQ(run(content)["provenance"]["risk"], "stated");
  content["platform"].erase("lifetimes");
  content["platform"]["market"] = "on-demand";
  EXPECT_EQ(run(content)["provenance"]["risk"], "none");
  content["platform"]["spot"] = "harsh";
  EXPECT_THAT(warnings(run(content)), HasSubstr("is not used: nothing is rented on the spot market"));
}

// Ten days of two hours up and one down: 80 up-times, which say about as much as the class does.
TEST_F(SpotCapacity, IsDrawnAroundARecordedPast) {
  Json content = on_spot(1);
  std::string rows = "time_s,nodes\n";
  for (int i = 0; i < 80; ++i) rows += fmt::format("{},1\n{},0\n", 10800 * i, 10800 * i + 7200);
  files_.folder().add("past.csv", rows + "864000,0\n");
  content["platform"]["spot"] = {{"past", "past.csv"}};
  Scenario scenario = load(content);
  const platforms::SpotPast& past = *scenario.pools[0].past;
  EXPECT_EQ(past.times_up, 80);
  EXPECT_EQ(past.up.si, 80 * 7200);
  EXPECT_EQ(past.down.si, 80 * 3600);
  double sum = 0, square = 0;
  constexpr int kSeeds = 2000;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    set_seed(scenario, static_cast<std::uint64_t>(seed));
    const double up = std::log(spot_zone(scenario, scenario.pools[0]).mean_up.si / 3600);
    sum += up / kSeeds, square += up * up / kSeeds;
  }
  const platforms::SpotModel& model = platforms::spot_model();
  const platforms::SpotClass one = model.given(model.of("V100"), past);
  EXPECT_NEAR(sum, std::log(one.mean_up.si / 3600), 0.02);
  EXPECT_NEAR(std::sqrt(square - sum * sum), one.mean_up_spread, 0.02);
  EXPECT_LT(one.mean_up_spread, 0.4 * model.of("V100").mean_up_spread);
  const Json result = run(content);
  EXPECT_EQ(result["provenance"]["risk"], "measured");
  EXPECT_THAT(warnings(result), HasSubstr("as in zones that one with the recorded past may be"));
  files_.folder().add("past.csv", "time_s,nodes\n0,1\n");
  EXPECT_THAT(error(content), AllOf(HasSubstr("/platform/spot/past: "), HasSubstr("two rows at least")));
  content["platform"]["spot"]["capacity"] = "past.csv";
  EXPECT_THAT(error(content), HasSubstr("/platform/spot"));
}

// Capacity of GPUs without recordings is drawn with the assumed spread, for every provider.
TEST_F(SpotCapacity, OfOtherGpusAndProvidersIsDrawnToo) {
  Json content = on_spot(1);
  content["platform"] = {
      {"catalog", "gcp"}, {"region", "us-central1"}, {"instance", "g2-standard-4"}, {"market", "spot"}};
  content.erase("storage"), content.erase("checkpoint");
  const Scenario scenario = load(content);
  EXPECT_EQ(scenario.pools[0].spot, Spot::drawn);
  EXPECT_FALSE(scenario.pools[0].lifetimes);
  Scenario other = load(on_spot());
  set_seed(other, scenario.seed);
  EXPECT_NE(spot_zone(scenario, scenario.pools[0]).mean_up.si, spot_zone(other, other.pools[0]).mean_up.si);
}

// A user's own platform file takes precedence; 10 % interruptions a month mean a mean life of 730 h / -ln 0.9 = 6929 h.
TEST_F(SpotCapacity, FollowsTheUsersPlatformWhereThatSaysSomething) {
  Json platform = Json::parse(made_up_platform());
  auto& prices = platform["instances"]["one"]["prices"];
  prices = Json::array({{{"region", "room-2"}, {"market", "spot"}, {"per_hour", "1USD/h"}, {"as_of", "undated"}}});
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "own.json"}, {"instance", "one"}, {"market", "spot"}};
  files_.folder().add("own.json", platform.dump());
  EXPECT_EQ(load(content).pools[0].spot, Spot::drawn);
  prices[0]["interrupted_per_month"] = 0.1;
  files_.folder().add("own.json", platform.dump());
  const Scenario stated = load(content);
  EXPECT_EQ(stated.pools[0].spot, Spot::stated);
  EXPECT_NEAR(stated.pools[0].lifetimes->mean.si / 3600, 730 / -std::log(0.9), 1e-6);
  content["platform"]["spot"] = "typical";
  EXPECT_EQ(load(content).pools[0].spot, Spot::typical);
  EXPECT_FALSE(load(content).pools[0].lifetimes);
}

TEST_F(SpotCapacity, IsThatOfPoolsWhichAPolicyMayUseBesides) {
  Json content = on_spot();
  content["platform"]["market"] = "on-demand";
  content["platform"]["spot"] = "harsh";
  content["policy"] = {{"name", "spot-first"}};
  const Scenario scenario = load(content);
  ASSERT_EQ(scenario.pools.size(), 2U);
  EXPECT_EQ(scenario.pools[0].spot, Spot::none);
  EXPECT_EQ(scenario.pools[1].spot, Spot::harsh);
}

TEST_F(SpotCapacity, RefusesWhatContradictsItself) {
  Json content = on_spot();
  content["platform"]["spot"] = "clam";
  EXPECT_THAT(error(content), AllOf(HasSubstr("/platform/spot: "), HasSubstr("did you mean \"calm\"?")));
  content["platform"]["spot"] = "calm";
  content["platform"]["lifetimes"] = {{"mean", "4h"}};
  EXPECT_THAT(error(content), HasSubstr("/platform/spot: \"lifetimes\" stands there too"));
  content["platform"].erase("lifetimes");
  content["platform"]["spot"] = {{"capacty", "c.csv"}};
  EXPECT_THAT(error(content), HasSubstr("/platform/spot"));
}

// Forty nodes are needed at the same time. About ten of them come and go independently, and each is available for 28 %
// of the time.
TEST_F(SpotCapacity, IsGivenUpWhereItNeverSuffices) {
  Json content = on_spot();
  content["platform"]["spot"] = "harsh";
  content["platform"]["nodes"] = 40;
  content["workload"]["steps"] = 100'000'000;
  EXPECT_THAT(message_of<Infeasible>([&] { simulate_json(load(content)); }), HasSubstr("never finishes"));
}

// A simulation of several seeds gives the same figures as a simulation of each seed alone.
TEST_F(SpotCapacity, SeedsComeToWhatEachComesToAlone) {
  Json content = on_spot(6);
  content["platform"]["spot"] = "typical";
  content["seed"] = 5;
  const Json alone = run(content);
  content["deadline"] = fmt::format("{}s", number(alone, "/time/total_s") + 1);
  const Scenario scenario = load(content);
  EXPECT_TRUE(has_chances(scenario));
  const Json all = Json::parse(run_child([&] { return documents::result_text(simulate_seeds(scenario, 9)); }));
  std::vector<double> times;
  int met = 0;
  for (std::uint64_t seed = 5; seed < 14; ++seed) {
    const Json one =
        Json::parse(run_child([&] { return documents::result_text(simulate(with_seed(scenario, seed))); }));
    times.push_back(number(one, "/time/total_s"));
    met += one["goals"]["met"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(number(all, "/time/total_s"), times[0]);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(number(all, "/seeds/time_s/median"), times[4]);
  EXPECT_EQ(all["seeds"]["met"], met);
  EXPECT_EQ(all["seeds"]["count"], 9);
  EXPECT_EQ(all["seeds"]["finished"], 9);
  EXPECT_LE(number(all, "/seeds/time_s/interval/0"), times[0] + 0.4 * (times[1] - times[0]));
  EXPECT_GE(number(all, "/seeds/time_s/interval/1"), times[8] - 0.4 * (times[8] - times[7]));
  content["platform"]["market"] = "on-demand";
  content["platform"].erase("spot");
  EXPECT_FALSE(has_chances(load(content)));
}

}  // namespace
}  // namespace ganymede::sim
