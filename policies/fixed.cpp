// The policy to which the others are compared: it never changes the allocation.

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

// Always asks for all nodes of the scenario, again for lost ones, and trains only with all of them.
Decision decide_fixed(const PolicyCall& call) { return {.nodes = requested_nodes(call.observation), .elastic = false}; }

}  // namespace

Policy fixed_policy() {
  return {.name = "fixed",
          .summary = "keeps what the scenario asks for, from the first step to the last",
          .source = "the control of Resource-Aware GAN Training, IJPREMS 2025",
          .periodic = false,
          .never_changes = true,
          .price_blind = true,
          .plan_default = true,
          .decide = decide_fixed};
}

}  // namespace ganymede::policies
