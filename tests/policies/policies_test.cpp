#include <gtest/gtest.h>

#include <set>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

TEST(Policies, AreNamedOnceAndFoundByName) {
  std::set<std::string_view> names;
  for (const Policy& policy : policies()) {
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
    EXPECT_FALSE(policy.summary.empty()) << policy.name;
    EXPECT_EQ(find_policy(policy.name), &policy);
  }
  EXPECT_EQ(find_policy("fixd"), nullptr);
}

}  // namespace
}  // namespace ganymede
