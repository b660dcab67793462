#include "common/text.hpp"
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

const Policy* find_policy(std::string_view name) { return find_named(policies(), name); }

std::vector<std::string> policy_names() { return names_of(policies()); }

}  // namespace ganymede::policies
