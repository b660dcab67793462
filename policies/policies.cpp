#include <algorithm>
#include <array>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

using Setting = PolicySetting;

constexpr std::array kResourceAware{
    Setting{"low", 0.55, 0, 1, "below this share of useful GPU time the nodes are halved"},
    Setting{"high", 0.85, 0, 1, "above it they are doubled"},
    Setting{"cooldown_s", 900, 0, 1e9, "seconds between two changes"}};
constexpr std::array kPredictive{
    Setting{"usd_per_hour_waited", 5, 0, 1e9, "what an hour of waiting for the result is worth"}};
constexpr std::array kKubernetes{
    Setting{"target", 0.8, 0.01, 1, "share of busy GPU time that it steers for"},
    Setting{"tolerance", 0.1, 0, 1, "nothing is done while this near to it (Kubernetes: 0.1)"},
    Setting{"down_after_s", 600, 0, 1e9, "seconds of low use before nodes go (cluster autoscaler: 10 min)"}};
constexpr std::array kQLearning{Setting{"explore", 0, 0, 1, "share of random decisions, for training"}};
constexpr std::array kSpotFirst{
    Setting{"patience_s", 300, 0, 1e9, "seconds after which a spot request counts as refused"},
    Setting{"retry_s", 3600, 0, 1e9, "seconds until spot alone is asked again"}};
constexpr std::array kMargin{Setting{"margin", 0.05, 0, 10, "share that the rest may take longer than measured"}};
constexpr std::array kRegion{Setting{"saving", 0.1, 0, 0.99, "share of the rest's cost that a move must save"}};
constexpr std::array kCarbon{
    Setting{"saving", 0.1, 0, 0.99, "share of the rest's emissions that a move must save"},
    Setting{"pause_above", 0, 0, 1e6, "g/kWh above which it waits if the deadline allows; 0: never"}};

constexpr std::array kPolicies{
    Policy{.name = "fixed",
           .summary = "keeps what the scenario asks for, from the first step to the last",
           .source = "the control of Resource-Aware GAN Training, IJPREMS 2025",
           .periodic = false,
           .decide = decide_fixed},
    Policy{.name = "resource-aware",
           .summary = "halves or doubles the nodes by the share of useful GPU time, as the model grows",
           .source = "Resource-Aware GAN Training on Cloud Infrastructure, IJPREMS 2025; thresholds are our own",
           .settings = kResourceAware,
           .decide = decide_resource_aware},
    Policy{.name = "predictive",
           .summary = "fits speed against GPUs while it runs and takes the cheapest predicted rest",
           .source = "after Optimus (Peng et al., EuroSys 2018) and Pollux (Qiao et al., OSDI 2021)",
           .settings = kPredictive,
           .decide = decide_predictive},
    Policy{.name = "q-learning",
           .summary = "halves, keeps or doubles the nodes by a table that `ganymede learn` trained",
           .source = "Watkins & Dayan, Machine Learning 8, 1992",
           .settings = kQLearning,
           .learns = true,
           .decide = decide_q_learning},
    Policy{.name = "spot-first",
           .summary = "spot nodes, and on-demand ones for what spot does not give",
           .source = "common practice",
           .settings = kSpotFirst,
           .other_market = true,
           .decide = decide_spot_first},
    Policy{.name = "uniform-progress",
           .summary = "spot while ahead of even progress towards the deadline, else on demand",
           .source = "Wu et al., Can't Be Late, NSDI 2024",
           .settings = kMargin,
           .other_market = true,
           .decide = decide_uniform_progress},
    Policy{.name = "deadline",
           .summary = "the fewest nodes that meet the deadline, on spot while there is time to fall back",
           .source = "our own",
           .settings = kMargin,
           .other_market = true,
           .decide = decide_deadline},
    Policy{.name = "budget",
           .summary = "the fastest allocation that the budget pays for to the end",
           .source = "our own",
           .settings = kMargin,
           .other_market = true,
           .decide = decide_budget},
    Policy{.name = "cheapest-region",
           .summary = "where the rest costs least, moving the data counted",
           .source = "after SkyPilot (Yang et al., NSDI 2023)",
           .settings = kRegion,
           .other_regions = true,
           .decide = decide_cheapest_region},
    Policy{.name = "carbon-aware",
           .summary = "where a kWh is cleanest, and later if the deadline allows",
           .source = "after Let's Wait Awhile (Wiesner et al., Middleware 2021)",
           .settings = kCarbon,
           .other_regions = true,
           .decide = decide_carbon_aware},
    Policy{.name = "kubernetes-autoscaler",
           .summary = "the nodes that bring GPU use to a target, with Kubernetes' delays",
           .source = "Kubernetes documentation: horizontal pod and cluster autoscaler",
           .settings = kKubernetes,
           .decide = decide_kubernetes_autoscaler},
    Policy{.name = "external",
           .summary = "a program of yours: observations in, decisions out, as JSON lines",
           .source = "docs/policies.md"},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  const auto found =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const Policy& row) { return row.name == name; });
  return found == kPolicies.end() ? nullptr : &*found;
}

}  // namespace ganymede
