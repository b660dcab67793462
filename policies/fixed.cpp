// The control against which the other policies are measured.

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

// Lost nodes are asked for again, and nothing is trained with fewer.
Decision decide_fixed(const PolicyCall& call) { return {.nodes = requested_nodes(call.observation), .elastic = false}; }

}  // namespace

Policy fixed_policy() {
  return {.name = "fixed",
          .summary = "keeps what the scenario asks for, from the first step to the last",
          .source = "the control of Resource-Aware GAN Training, IJPREMS 2025",
          .periodic = false,
          .never_changes = true,
          .plan_default = true,
          .decide = decide_fixed};
}

}  // namespace ganymede::policies
