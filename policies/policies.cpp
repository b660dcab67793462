#include <algorithm>

#include "policies/policy.hpp"

// The register: one row for each policy, in the order in which they are listed; the first is the default. ROW(NAME)
// stands for the policy that NAME_policy() returns, which is defined in NAME.cpp.
// clang-format off
#define GANYMEDE_POLICIES(ROW) \
  ROW(fixed) \
  ROW(resource_aware) \
  ROW(predictive) \
  ROW(q_learning) \
  ROW(spot_first) \
  ROW(uniform_progress) \
  ROW(deadline) \
  ROW(budget) \
  ROW(cheapest_region) \
  ROW(carbon_aware) \
  ROW(kubernetes_autoscaler) \
  ROW(external)
// clang-format on

namespace ganymede::policies {

#define GANYMEDE_DECLARE(name) Policy name##_policy();
GANYMEDE_POLICIES(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const Policy> policies() {
#define GANYMEDE_CALL(name) name##_policy(),
  static const Policy all[] = {GANYMEDE_POLICIES(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return all;
}

const Policy& default_policy() { return policies().front(); }

const Policy* find_policy(std::string_view name) {
  const auto all = policies();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Policy& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.emplace_back(policy.name);
  return names;
}

}  // namespace ganymede::policies
