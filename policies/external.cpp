// A program of the user's decides: sim/run/policy_process.hpp talks to it.

#include "policies/policy.hpp"

namespace ganymede::policies {

Policy external_policy() {
  return {.name = "external",
          .summary = "a program of yours: observations in, decisions out, as JSON lines",
          .source = "docs/policies.md"};
}

}  // namespace ganymede::policies
