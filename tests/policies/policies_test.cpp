#include <gtest/gtest.h>

#include <set>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

using namespace literals;

Allocation four_nodes() { return {{{"p3.2xlarge", "us-east-1", Market::on_demand, 4, 1}}}; }

TEST(Policies, AreNamedOnceAndFoundByName) {
  std::set<std::string_view> names;
  for (const Policy& policy : policies()) {
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
    EXPECT_FALSE(policy.summary.empty()) << policy.name;
    EXPECT_EQ(find_policy(policy.name), &policy);
  }
  EXPECT_EQ(find_policy("fixd"), nullptr);
}

// A policy that kept anything of what it was asked in between would answer the first question otherwise.
TEST(Policies, RememberNothing) {
  const Observation start{10_s, four_nodes(), {}, 5, 95};
  Allocation one = four_nodes();
  one.pools[0].nodes = 1;
  const Observation near_the_end{9000_s, one, four_nodes(), 99, 1};
  for (const Policy& policy : policies()) {
    const Allocation first = policy.decide(start).allocation;
    const Allocation other = policy.decide(near_the_end).allocation;
    EXPECT_EQ(policy.decide(start).allocation, first) << policy.name;
    EXPECT_EQ(policy.decide(near_the_end).allocation, other) << policy.name;
  }
}

TEST(Fixed, AsksForWhatTheScenarioAsksFor) {
  const Observation at_start{0_s, four_nodes(), {}, 0, 100};
  EXPECT_EQ(decide_fixed(at_start).allocation, four_nodes());

  Allocation half = four_nodes();
  half.pools[0].nodes = 2;
  const Observation after_a_loss{600_s, four_nodes(), half, 50, 50};
  EXPECT_EQ(decide_fixed(after_a_loss).allocation, four_nodes());
}

}  // namespace
}  // namespace ganymede
