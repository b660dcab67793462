#include "common/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace ganymede {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> first(RandomStream stream, int count) {
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(stream.next());
  return numbers;
}

TEST(Fnv1a, GivesThePublishedValues) {
  // Test vectors of the FNV authors (draft-eastlake-fnv, appendix C).
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(RandomStream, IsXoshiro256PlusPlus) {
  // From the state 1, 2, 3, 4: the values that the authors' C code gives, as rand_xoshiro's tests have them too.
  RandomStream stream(0, "");
  stream.restore({1, 2, 3, 4});
  EXPECT_THAT(first(stream, 5),
              ElementsAre(41943041U, 58720359U, 3588806011781223U, 3591011842654386U, 9228616714210784205U));
}

// The values in the following tests come from a few lines of Python, written from the papers and checked against the
// published values above: SplitMix64 from seed XOR rotl(FNV-1a(name), 17) fills the state of xoshiro256++; uniform() is
// the upper 53 bits; normal() is Marsaglia's polar method and exponential() -log(1 - u), with Python's math.log.
TEST(RandomStream, StartsFromSeedAndName) {
  EXPECT_THAT(first({0, ""}, 4),
              ElementsAre(0xfe8169385fd61a4eU, 0x84f2e60154da4ffeU, 0x2d5211c3aec2607cU, 0xb18d2ced5513f240U));
  EXPECT_THAT(first({1, "kernel/latent"}, 4),
              ElementsAre(0xcef9a9a30f6d76c3U, 0xcfdf640db401dd03U, 0x267bdd1fcee5bbdU, 0xec1c4c3d08716edU));
  EXPECT_THAT(first({UINT64_MAX, "a"}, 4),
              ElementsAre(0xe596d6e41710704aU, 0x82536b4b76bff6f5U, 0xfd104f8498a7de4fU, 0xce1cd11a262d153aU));
}

TEST(RandomStream, DistributionsGiveTheSameNumbersEverywhere) {
  RandomStream uniform(7, "test/uniform");
  EXPECT_EQ(uniform.uniform(), 0.10973861778860117);
  EXPECT_EQ(uniform.uniform(), 0.46041326646013936);
  EXPECT_EQ(uniform.uniform(), 0.009927915875017845);

  RandomStream normal(7, "test/normal");
  for (const double expected : {-0.4231319856680154, 0.40399021890047765, -1.0550371790889668, 1.5127181197518207})
    EXPECT_NEAR(normal.normal() / expected, 1, 4e-16);

  RandomStream exponential(7, "test/exponential");
  for (const double expected : {0.005667320652034491, 0.00774212006202431, 0.280785318948714})
    EXPECT_NEAR(exponential.exponential() / expected, 1, 1e-15);

  RandomStream below(7, "test/below");
  for (const std::uint64_t expected : {2U, 2U, 2U, 5U, 4U, 1U, 5U, 5U, 5U, 1U, 4U, 5U})
    EXPECT_EQ(below.below(6), expected);
  RandomStream half(7, "test/below");  // just above half of the range: nearly every second draw is refused
  for (const std::uint64_t expected :
       {2056159332089641927U, 4017241937167197950U, 8678122030695985544U, 320400221295400774U})
    EXPECT_EQ(half.below((std::uint64_t{1} << 63) + 1), expected);
}

TEST(RandomStream, NamesAndSeedsMakeStreamsOfTheirOwn) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U})
    for (const char* name : {"", "a", "b", "kernel/latent", "kernel/data", "run/step-sampler"})
      for (const std::uint64_t number : first({seed, name}, 100)) seen.insert(number);
  EXPECT_EQ(seen.size(), 4U * 6 * 100);
}

TEST(RandomStream, StreamsAreNotCorrelated) {
  RandomStream a(1, "a");
  RandomStream b(1, "b");
  constexpr int kDraws = 100'000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) sum += a.normal() * b.normal();
  EXPECT_LT(std::abs(sum / kDraws), 4 / std::sqrt(kDraws));  // the product has variance 1: four standard errors
}

TEST(RandomStream, RestoreContinuesWhereStateWasTaken) {
  RandomStream stream(1, "a");
  stream.normal();
  const auto state = stream.state();
  const double expected = stream.normal();
  RandomStream other(99, "elsewhere");
  other.restore(state);
  EXPECT_EQ(other.normal(), expected);
}

/// Means of x, x^2 and x^3 over many draws.
template <class Draw>
std::array<double, 3> moments(int draws, Draw&& draw) {
  std::array<double, 3> sums{};
  for (int i = 0; i < draws; ++i) {
    const double x = draw();
    sums[0] += x / draws;
    sums[1] += x * x / draws;
    sums[2] += x * x * x / draws;
  }
  return sums;
}

// Bounds are four standard errors: sqrt((E[x^2k] - E[x^k]^2) / draws). With a fixed seed the outcome is fixed too.
constexpr int kDraws = 200'000;
double four_errors(double variance) { return 4 * std::sqrt(variance / kDraws); }

TEST(RandomStream, UniformHasItsMoments) {
  RandomStream stream(1, "moments");
  double low = 1;
  double high = 0;
  const auto m = moments(kDraws, [&] {
    const double x = stream.uniform();
    low = std::min(low, x);
    high = std::max(high, x);
    return x;
  });
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  EXPECT_NEAR(m[0], 1.0 / 2, four_errors(1.0 / 3 - 1.0 / 4));
  EXPECT_NEAR(m[1], 1.0 / 3, four_errors(1.0 / 5 - 1.0 / 9));
  EXPECT_NEAR(m[2], 1.0 / 4, four_errors(1.0 / 7 - 1.0 / 16));
}

TEST(RandomStream, NormalHasItsMoments) {
  RandomStream stream(1, "moments");
  const auto m = moments(kDraws, [&] { return stream.normal(); });
  EXPECT_NEAR(m[0], 0, four_errors(1));
  EXPECT_NEAR(m[1], 1, four_errors(3 - 1));
  EXPECT_NEAR(m[2], 0, four_errors(15));
}

TEST(RandomStream, ExponentialHasItsMoments) {
  RandomStream stream(1, "moments");
  const auto m = moments(kDraws, [&] { return stream.exponential(); });
  EXPECT_NEAR(m[0], 1, four_errors(1));
  EXPECT_NEAR(m[1], 2, four_errors(24 - 4));
  EXPECT_NEAR(m[2], 6, four_errors(720 - 36));
}

TEST(RandomStream, BelowIsFair) {
  for (const std::uint64_t bound : {2U, 3U, 6U, 10U}) {
    RandomStream stream(1, "below");
    std::vector<double> counts(bound);
    constexpr double kThrows = 60'000;
    for (int i = 0; i < kThrows; ++i) ++counts[stream.below(bound)];
    double chi_square = 0;
    const double expected = kThrows / static_cast<double>(bound);
    for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
    // The 99.9 % quantile of chi-square with 9 degrees of freedom is 27.88, with fewer it is less; with one it
    // is 10.83.
    EXPECT_LT(chi_square, bound == 2 ? 10.83 : 27.88) << bound;
  }
  RandomStream stream(1, "below");
  EXPECT_EQ(stream.below(1), 0U);
}

TEST(RandomStream, FillNormalIsNormalInFloats) {
  RandomStream a(3, "fill");
  RandomStream b(3, "fill");
  std::vector<float> values(5);
  a.fill_normal(values);
  for (const float value : values) EXPECT_EQ(value, static_cast<float>(b.normal()));
}

// The reference is long double: 11 bits more than the result can show.
double units_in_last_place(double x) {
  const auto truth = std::log(static_cast<long double>(x));
  const double magnitude = std::abs(static_cast<double>(truth));
  const double unit = std::nextafter(magnitude, std::numeric_limits<double>::infinity()) - magnitude;
  return static_cast<double>(std::abs(static_cast<long double>(portable_log(x)) - truth)) / unit;
}

TEST(PortableLog, IsWithinTwoUnitsOverAllMagnitudes) {
  RandomStream stream(1, "log");
  double worst = 0;
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    for (int i = 0; i < 50; ++i) {
      const double x = std::ldexp(1 + stream.uniform(), exponent);
      if (x > 0 && std::isfinite(x)) worst = std::max(worst, units_in_last_place(x));
    }
  }
  EXPECT_LE(worst, 2);
}

TEST(PortableLog, IsWithinTwoUnitsAroundOne) {
  RandomStream stream(1, "log");
  double worst = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = 0.5 + 1.5 * stream.uniform();
    if (x != 1) worst = std::max(worst, units_in_last_place(x));
  }
  for (int shift = 1; shift <= 52; ++shift) {
    for (const double x : {1 + std::ldexp(1, -shift), 1 - std::ldexp(1, -shift)})
      worst = std::max(worst, units_in_last_place(x));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(portable_log(1), 0);
}

}  // namespace
}  // namespace ganymede
