// Max-min fair rates of literal flows; every expected rate is derived beside it.

#include "sim/engine/max_min_solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "common/random.hpp"

namespace ganymede::sim {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// A solver with flows of 100 bytes that all start at time 0.
class Flows {
 public:
  explicit Flows(std::vector<double> bandwidths) : solver(std::move(bandwidths)) {}

  int add(std::vector<LinkUse> uses, double limit = kNoLimit) {
    uses_.push_back(std::move(uses));
    numbers_.push_back(solver.start(0, 100, limit, uses_.back()));
    return numbers_.back();
  }

  /// The rates of all flows, in the order in which they were added.
  std::vector<double> rates(double now = 0) {
    solver.update_rates(now);
    std::vector<double> rates;
    for (const int flow : numbers_) rates.push_back(solver.rate(flow));
    return rates;
  }

  MaxMinSolver solver;

 private:
  std::deque<std::vector<LinkUse>> uses_;  // whose addresses the solver keeps
  std::vector<int> numbers_;
};

TEST(MaxMinSolver, FlowsOfOneLinkShareItEqually) {
  Flows flows({12});
  for (int i = 0; i < 3; ++i) flows.add({{0}});
  EXPECT_THAT(flows.rates(), ElementsAre(DoubleEq(4), DoubleEq(4), DoubleEq(4)));
}

// The first flow is limited to 2 of the link's 10; the second gets the other 8.
TEST(MaxMinSolver, WhatALimitedFlowLeavesGoesToTheOthers) {
  Flows flows({10});
  flows.add({{0}}, 2);
  flows.add({{0}});
  EXPECT_THAT(flows.rates(), ElementsAre(DoubleEq(2), DoubleEq(8)));
}

TEST(MaxMinSolver, ALinkThatIsNotFullSetsNoRate) {
  Flows flows({10});
  flows.add({{0}}, 3);
  flows.add({{0}}, 4);
  EXPECT_THAT(flows.rates(), ElementsAre(DoubleEq(3), DoubleEq(4)));
}

// Link 1 is the narrowest for each of its flows: 4 / 2 = 2. That leaves 10 - 2 = 8 of link 0 for its own flow.
TEST(MaxMinSolver, AFlowOverTwoLinksHasTheRateOfTheNarrower) {
  Flows flows({10, 4});
  flows.add({{0}, {1}});
  flows.add({{0}});
  flows.add({{1}});
  EXPECT_THAT(flows.rates(), ElementsAre(DoubleEq(2), DoubleEq(8), DoubleEq(2)));
}

// A parking lot (Bertsekas and Gallager, figure 6.14): a long flow crosses three links of 1 that carry one, two and one
// flow of their own. The middle link gives 1/3 to each of its three; the others have 2/3 left.
TEST(MaxMinSolver, AParkingLotIsSharedLinkByLink) {
  Flows flows({1, 1, 1});
  flows.add({{0}, {1}, {2}});
  flows.add({{0}});
  flows.add({{1}});
  flows.add({{1}});
  flows.add({{2}});
  const double third = 1.0 / 3;
  EXPECT_THAT(flows.rates(),
              ElementsAre(DoubleEq(third), DoubleEq(2 * third), DoubleEq(third), DoubleEq(third), DoubleEq(2 * third)));
}

// A flow of weight 3 stands for three like flows: with one more, each of the four gets 10 / 4.
TEST(MaxMinSolver, AWeightCountsTheFlowsOfAClass) {
  Flows flows({10});
  flows.add({{0, 3}});
  flows.add({{0, 1}});
  EXPECT_THAT(flows.rates(), ElementsAre(DoubleEq(2.5), DoubleEq(2.5)));
}

// Two flows of 100 bytes at 5 a second; after 4 s each has 80 left. Then the second has the link to itself for another
// 80 / 10 s.
TEST(MaxMinSolver, AFlowThatEndsLeavesItsShare) {
  Flows flows({10});
  const int first = flows.add({{0}}), second = flows.add({{0}});
  ASSERT_THAT(flows.rates(), ElementsAre(DoubleEq(5), DoubleEq(5)));
  EXPECT_DOUBLE_EQ(flows.solver.end_time(second), 20);
  EXPECT_DOUBLE_EQ(flows.solver.remaining_bytes(4, second), 80);
  flows.solver.finish(4, first);
  flows.solver.update_rates(4);
  EXPECT_DOUBLE_EQ(flows.solver.rate(second), 10);
  EXPECT_DOUBLE_EQ(flows.solver.end_time(second), 12);
}

// The first flow is alone for 1 s and sends 10 of its 100 bytes; with a second one it needs 90 / 5 s more.
TEST(MaxMinSolver, AFlowThatStartsLaterTakesItsShareFromThenOn) {
  Flows flows({10});
  const int first = flows.add({{0}});
  ASSERT_THAT(flows.rates(), ElementsAre(DoubleEq(10)));
  flows.solver.changed_flows().clear();
  const std::vector<LinkUse> uses{{0}};
  const int second = flows.solver.start(1, 100, kNoLimit, uses);
  flows.solver.update_rates(1);
  EXPECT_THAT(flows.solver.changed_flows(), UnorderedElementsAre(first, second));
  EXPECT_DOUBLE_EQ(flows.solver.end_time(first), 1 + 90.0 / 5);
  EXPECT_DOUBLE_EQ(flows.solver.end_time(second), 1 + 100.0 / 5);
}

// Nothing changes on link 1, so its flow keeps its rate and is not reported. The number of a flow is used again after
// its end.
TEST(MaxMinSolver, OnlyFlowsWhoseRatesChangeAreReported) {
  Flows flows({10, 6});
  const int first = flows.add({{0}}), second = flows.add({{0}}), other = flows.add({{1}});
  ASSERT_THAT(flows.rates(), ElementsAre(DoubleEq(5), DoubleEq(5), DoubleEq(6)));
  EXPECT_THAT(flows.solver.changed_flows(), UnorderedElementsAre(first, second, other));
  flows.solver.changed_flows().clear();
  flows.solver.update_rates(1);
  EXPECT_THAT(flows.solver.changed_flows(), IsEmpty());
  flows.solver.finish(1, first);
  flows.solver.update_rates(1);
  EXPECT_THAT(flows.solver.changed_flows(), ElementsAre(second));
  EXPECT_EQ(flows.add({{0}}), first);
}

/// Max-min fair rates by filling: the rates of all flows rise together, and those on a link that is full stop there.
std::vector<double> filled(const std::vector<double>& bandwidths, const std::vector<std::vector<LinkUse>>& flows) {
  std::vector<double> rates(flows.size(), -1);
  while (std::find(rates.begin(), rates.end(), -1.0) != rates.end()) {
    double level = kNoLimit;
    int full = -1;
    for (std::size_t link = 0; link < bandwidths.size(); ++link) {
      double left = bandwidths[link], rising = 0;
      for (std::size_t i = 0; i < flows.size(); ++i)
        for (const LinkUse& use : flows[i])
          if (use.link == static_cast<int>(link)) {
            if (rates[i] < 0)
              rising += use.weight;
            else
              left -= use.weight * rates[i];
          }
      if (rising > 0 && left / rising < level) {
        level = left / rising;
        full = static_cast<int>(link);
      }
    }
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const LinkUse& use : flows[i])
        if (use.link == full && rates[i] < 0) rates[i] = level;
  }
  return rates;
}

// Weights are fractions and links are alike, so that levels are often equal but for rounding.
TEST(MaxMinSolver, EqualLevelsOfFractionalWeightsSettle) {
  RandomStream draw(1, "fractional weights");
  for (int round = 0; round < 500; ++round) {
    const std::vector<double> bandwidths(1 + draw.below(10), 1.25e9);
    std::vector<std::vector<LinkUse>> uses;
    Flows flows(bandwidths);
    for (std::size_t i = 0, count = 1 + draw.below(8); i < count; ++i) {
      const std::uint64_t parts = 1 + draw.below(7);
      uses.push_back({{0, static_cast<double>(1 + draw.below(parts)) / static_cast<double>(parts)}});
      for (int link = 1; link < static_cast<int>(bandwidths.size()); ++link)
        if (draw.below(3) > 0)
          uses.back().push_back({link, static_cast<double>(1 + draw.below(parts)) / static_cast<double>(parts)});
      flows.add(uses.back());
      flows.solver.update_rates(0);
    }
    const std::vector<double> expected = filled(bandwidths, uses), rates = flows.rates();
    for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i] / expected[i], 1, 1e-12);
  }
}

}  // namespace
}  // namespace ganymede::sim
