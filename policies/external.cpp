// The policy whose decisions a program of the user makes; sim/run/policy_process.hpp communicates with that program.

#include "policies/policy.hpp"

namespace ganymede::policies {

Policy external_policy() {
  return {.name = "external",
          .summary = "a program of yours: observations in, decisions out, as JSON lines",
          .source = "docs/policies.md"};
}

}  // namespace ganymede::policies
