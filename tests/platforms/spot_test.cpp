#include "platforms/spot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/spot_shocks.hpp"

namespace ganymede::platforms {
namespace {
Json measured() { return Json::parse(read_file(std::string(GANYMEDE_SOURCE_DIR) + "/platforms/spot/measured.json")); }

double logit(double share) { return std::log(share / (1 - share)); }
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / static_cast<double>(values.size()));
}

// Up and down in turn in us-west-2b from 2023-02-15 on, one V100, in units of 195 s: skypilot-org/spot-traces
// @221da1ab9bdf, availability/1-node/aws-02-15-2023/us-west-2b_v100_1.json.
constexpr double kUp[] = {71,  17,  61,   3,  1454, 39, 262, 556, 3,    667, 3,    7,    4,  262, 159, 32,
                          81,  88,  49,   3,  3,    9,  26,  262, 29,   101, 6,    126,  56, 3,   36,  23,
                          6,   208, 33,   52, 4,    4,  3,   12,  3,    7,   7,    175,  4,  20,  3,   201,
                          36,  155, 2170, 20, 13,   3,  3,   217, 13,   459, 3,    2506, 81, 3,   3,   13,
                          7,   3,   10,   22, 3,    16, 29,  4,   2352, 194, 227,  52,   4,  3,   6,   62,
                          323, 36,  10,   94, 203,  6,  75,  3,   3,    94,  1619, 362,  38, 6,   1435};
constexpr double kDown[] = {16, 6, 7,  7,   42, 3,   7,  33, 7,  6,  13,  6,  16, 3, 7,  4,  61, 48, 3,
                            23, 7, 62, 133, 10, 130, 16, 13, 39, 74, 13,  3,  23, 3, 58, 16, 6,  12, 107,
                            33, 7, 3,  3,   52, 22,  15, 16, 55, 91, 100, 4,  6,  6, 7,  3,  7,  6,  7,
                            10, 3, 6,  7,   19, 10,  16, 6,  7,  6,  7,   10, 7,  6, 6,  3,  3,  48, 6,
                            6,  7, 3,  6,   3,  16,  26, 39, 7,  3,  3,   36, 3,  6, 6,  3,  52, 19};
constexpr double kUnit_s = 195;

TEST(Spot, TheZoneOfARecordingIsWhatItsDurationsSay) {
  const double up = std::accumulate(std::begin(kUp), std::end(kUp), 0.0);
  const double down = std::accumulate(std::begin(kDown), std::end(kDown), 0.0);
  const double mean_h = up / std::size(kUp) * kUnit_s / 3600;
  const Json file = measured();
  for (const Json& zone : file["zones"]) {
    if (zone["series"] != "aws-02-15-2023/us-west-2b_v100_1") continue;
    EXPECT_NEAR(zone["mean_up_h"].get<double>(), mean_h, 1e-3 * mean_h);
    EXPECT_NEAR(zone["availability"].get<double>(), up / (up + down), 1e-4);
    // The fitted distribution's share of up-times below an hour is the counted one within the stated distance.
    const auto spread = file["durations"]["up_spread"].get<double>();
    const double below = 0.5 * std::erfc(-(std::log(1 / mean_h) + spread * spread / 2) / spread / std::sqrt(2.0));
    const auto counted = std::count_if(std::begin(kUp), std::end(kUp), [](double t) { return t * kUnit_s < 3600; });
    EXPECT_NEAR(below, static_cast<double>(counted) / std::size(kUp), zone["up_distance"].get<double>() + 0.05);
    return;
  }
  FAIL() << "the series is not in the file";
}

// Each class's centre and the spread of all around their classes' centres, worked out of the zones in the file.
TEST(Spot, ClassesAreTheMeansOfTheirZones) {
  const Json file = measured();
  const SpotModel& model = spot_model();
  double square_up = 0, square_share = 0, product = 0;
  std::size_t classes = 0;
  for (const SpotClass& of : model.classes) {
    std::vector<double> up, share;
    for (const Json& zone : file["zones"])
      if (zone["class"] == of.name) {
        up.push_back(std::log(zone["mean_up_h"].get<double>()));
        share.push_back(logit(zone["availability"].get<double>()));
      }
    EXPECT_EQ(static_cast<std::size_t>(of.zones), up.size()) << of.name;
    if (up.empty()) continue;
    ++classes;
    EXPECT_NEAR(std::log(of.mean_up.si / 3600), mean_of(up), 1e-3) << of.name;
    EXPECT_NEAR(logit(of.availability), mean_of(share), 1e-3) << of.name;
    for (std::size_t i = 0; i < up.size(); ++i) {
      square_up += (up[i] - mean_of(up)) * (up[i] - mean_of(up));
      square_share += (share[i] - mean_of(share)) * (share[i] - mean_of(share));
      product += (up[i] - mean_of(up)) * (share[i] - mean_of(share));
    }
  }
  const double free = static_cast<double>(file["zones"].size() - classes);
  EXPECT_NEAR(model.of("V100").mean_up_spread, std::sqrt(square_up / free), 1e-3);
  EXPECT_NEAR(model.of("V100").availability_spread, std::sqrt(square_share / free), 1e-3);
  EXPECT_NEAR(model.correlation, product / std::sqrt(square_up * square_share), 1e-3);
  // What nobody measured lies about where the others do, and is less sure.
  EXPECT_EQ(model.of("H100").name, "other");
  EXPECT_NEAR(model.of("H100").mean_up_spread / model.of("V100").mean_up_spread, file["wider"]["factor"].get<double>(),
              1e-3);
}

TEST(Spot, TheLognormalFitsBest) {
  for (const char* which : {"up", "down"}) {
    const Json likelihoods = measured()["durations"]["log_likelihood"][which];
    for (const auto& [family, value] : likelihoods.items())
      EXPECT_LE(value.get<double>(), likelihoods["lognormal"].get<double>()) << which << " " << family;
    EXPECT_GT(likelihoods["lognormal"].get<double>(), likelihoods["exponential"].get<double>() + 1000) << which;
  }
}

// A lognormal duration of mean m has the median m exp(-s²/2); what is left of it at a moment has the mean
// E(X²)/(2 E(X)) = m exp(s²)/2.
TEST(Spot, DurationsHaveTheirMeanAndRests) {
  constexpr int kDraws = 400'000;
  RandomStream random(1, "test/spot");
  const double spread = 0.8;
  std::vector<double> whole, rest;
  for (int i = 0; i < kDraws; ++i) whole.push_back(draw_duration(Seconds{5000}, spread, random).si);
  for (int i = 0; i < kDraws; ++i) rest.push_back(draw_rest(Seconds{5000}, spread, random).si);
  EXPECT_NEAR(mean_of(whole), 5000, 0.01 * 5000);
  std::nth_element(whole.begin(), whole.begin() + kDraws / 2, whole.end());
  EXPECT_NEAR(whole[kDraws / 2], 5000 * std::exp(-0.32), 0.01 * 5000);
  EXPECT_NEAR(mean_of(rest), 5000 * std::exp(0.64) / 2, 0.02 * 5000);
  // With the fitted spread, whose mean takes more draws.
  std::vector<double> wide;
  for (int i = 0; i < kDraws; ++i) wide.push_back(draw_duration(Seconds{9000}, spot_model().up_spread, random).si);
  EXPECT_NEAR(mean_of(wide), 9000, 0.03 * 9000);
}

// Bayes' rule for normal distributions: precisions add up, and so do means weighted by them.
TEST(Spot, APastIsWeighedAgainstTheClass) {
  const SpotModel& model = spot_model();
  const SpotClass& of = model.of("V100");
  for (const int times : {1, 20, 1000}) {
    const SpotClass one = model.given(of, {Seconds{3600.0 * times}, Seconds{1800.0 * times}, times});
    const double seen = times / model.up_noise, known = 1 / (of.mean_up_spread * of.mean_up_spread);
    EXPECT_NEAR(std::log(one.mean_up.si / 3600), known * std::log(of.mean_up.si / 3600) / (seen + known), 1e-9);
    EXPECT_NEAR(one.mean_up_spread, 1 / std::sqrt(seen + known), 1e-9);
    const double seen_share = times / model.availability_noise,
                 known_share = 1 / (of.availability_spread * of.availability_spread);
    EXPECT_NEAR(logit(one.availability),
                (seen_share * std::log(2) + known_share * logit(of.availability)) / (seen_share + known_share), 1e-9);
    EXPECT_NEAR(one.availability_spread, 1 / std::sqrt(seen_share + known_share), 1e-9);
  }
  const SpotClass never = model.given(of, {Seconds{0}, Seconds{86400}, 0});
  EXPECT_LT(never.availability, of.availability);
  EXPECT_GT(never.availability, 0);
}

TEST(Spot, DrawnZonesSpreadAsTheClassSays) {
  const SpotModel& model = spot_model();
  const SpotClass& of = model.of("V100");
  RandomStream random(1, "test/zones");
  std::vector<double> up, share, product;
  for (int i = 0; i < 100'000; ++i) {
    const SpotZone zone = model.draw(of, {random.normal(), random.normal()});
    up.push_back((std::log(zone.mean_up.si) - std::log(of.mean_up.si)) / of.mean_up_spread);
    share.push_back((logit(zone.availability()) - logit(of.availability)) / of.availability_spread);
    product.push_back(up.back() * share.back());
  }
  EXPECT_NEAR(mean_of(up), 0, 0.02);
  EXPECT_NEAR(mean_of(share), 0, 0.02);
  EXPECT_NEAR(deviation_of(up), 1, 0.02);
  EXPECT_NEAR(deviation_of(share), 1, 0.02);
  EXPECT_NEAR(mean_of(product), model.correlation, 0.02);
}

/// Changes of a zone that follows others, up to `limit_s`.
std::vector<double> changes_of(const SpotZone& zone, int seed, const char* own, double limit_s, bool* up_first) {
  const auto at = static_cast<std::uint64_t>(seed);
  FollowingZone following(zone, RandomStream(at, "test/region"), RandomStream(at, own));
  *up_first = following.up_first();
  std::vector<double> changes{following.next().si};
  while (changes.back() < limit_s) changes.push_back(following.next().si);
  return changes;
}

// A zone that follows others is up as often as one that does not, and its durations are as long: as many are below each
// quantile of the lognormal distribution as there must be, within four standard errors.
TEST(Spot, AZoneThatFollowsOthersComesAndGoesAsOneAlone) {
  constexpr int kSeeds = 2000;
  const double spreads[] = {spot_model().down_spread, spot_model().up_spread};
  for (const double odds : {0.3, 3.0}) {
    const SpotZone zone{Seconds{8000}, Seconds{8000 / odds}};
    double up_at[3] = {}, below[2][3] = {}, count[2] = {};
    for (int seed = 0; seed < kSeeds; ++seed) {
      bool up = false;
      const std::vector<double> changes = changes_of(zone, seed, "test/own", 2e5, &up);
      for (int i = 0; i < 3; ++i) {
        const auto passed = std::upper_bound(changes.begin(), changes.end(), 1e5 * i) - changes.begin();
        up_at[i] += (passed % 2 == 0) == up ? 1.0 / kSeeds : 0;
      }
      // Which durations count is decided before they are drawn: the first four that are whole.
      for (std::size_t i = 1; i < 5 && i < changes.size(); ++i) {
        const int kind = (i % 2 == 0) == up ? 1 : 0;
        const double mean = kind == 1 ? zone.mean_up.si : zone.mean_down.si;
        const double z =
            (std::log((changes[i] - changes[i - 1]) / mean) + spreads[kind] * spreads[kind] / 2) / spreads[kind];
        for (int quantile = 0; quantile < 3; ++quantile) below[kind][quantile] += z < quantile - 1 ? 1 : 0;
        ++count[kind];
      }
    }
    for (const double share : up_at) EXPECT_NEAR(share, zone.availability(), 4 * std::sqrt(0.25 / kSeeds)) << odds;
    for (int kind : {0, 1})
      for (int quantile = 0; quantile < 3; ++quantile)
        EXPECT_NEAR(below[kind][quantile] / count[kind], 0.5 * std::erfc((1 - quantile) / std::sqrt(2.0)),
                    4 * std::sqrt(0.25 / count[kind]))
            << odds << " " << kind << " " << quantile;
  }
}

// Pairs of recorded zones of one region, period and instance are simulated with their own means: their states correlate
// as the recorded ones do on average. The same zone in two regions does not correlate.
TEST(Spot, ZonesOfARegionFollowEachOtherAsMeasured) {
  const Json file = measured();
  const auto kind_of = [](const Json& zone) {  // "aws-02-15-2023/us-east-1a_v100_1" without its zone's letter
    auto series = zone["series"].get<std::string>();
    return series.erase(series.find('_') - 1, 1);
  };
  const auto zone_of = [](const Json& zone) {
    const double up = 3600 * zone["mean_up_h"].get<double>(), share = zone["availability"].get<double>();
    return SpotZone{Seconds{up}, Seconds{up * (1 - share) / share}};
  };
  const auto states = [](const SpotZone& zone, int seed, const char* own) {
    constexpr double kEnd_s = 2e7;
    bool up = false;
    std::vector<double> sampled;
    for (const double change : changes_of(zone, seed, own, kEnd_s, &up)) {
      while (600.0 * static_cast<double>(sampled.size()) < std::min(change, kEnd_s)) sampled.push_back(up ? 1 : 0);
      up = !up;
    }
    return sampled;
  };
  const auto correlation = [](const std::vector<double>& a, const std::vector<double>& b) {
    const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
    return (product - mean_of(a) * mean_of(b)) / (deviation_of(a) * deviation_of(b));
  };
  std::vector<double> together, apart;
  int seed = 0;
  for (const Json& one : file["zones"])
    for (const Json& other : file["zones"]) {
      if (one["series"].get<std::string>() <= other["series"].get<std::string>() || kind_of(one) != kind_of(other))
        continue;
      const std::vector<double> first = states(zone_of(one), ++seed, "one");
      together.push_back(correlation(first, states(zone_of(other), seed, "other")));
      apart.push_back(correlation(first, states(zone_of(other), -seed, "other")));
    }
  EXPECT_EQ(together.size(), file["region"]["pairs"].get<std::size_t>());
  EXPECT_NEAR(mean_of(together), file["region"]["correlation"].get<double>(), 0.03);
  EXPECT_NEAR(mean_of(apart), 0, 0.03);
}

}  // namespace
}  // namespace ganymede::platforms
