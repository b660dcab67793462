#include <algorithm>
#include <array>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

constexpr std::array kPolicies{
    Policy{"fixed", "keeps what the scenario asks for, from the first step to the last", decide_fixed},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  const auto found =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const Policy& row) { return row.name == name; });
  return found == kPolicies.end() ? nullptr : &*found;
}

}  // namespace ganymede
