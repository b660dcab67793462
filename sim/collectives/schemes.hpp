#pragma once
// The functions behind the rows of the table in allreduce.cpp, each defined in the file of its scheme.

#include "sim/collectives/allreduce.hpp"

namespace ganymede {

using WhyNot = std::optional<std::string>;

Schedule plan_ring(const PlanRequest& request);
WhyNot ring_why_not(const PlanRequest& request);
Seconds ring_on_star(const PlanRequest& request, const Star& star);

Schedule plan_multi_ring(const PlanRequest& request);
WhyNot multi_ring_why_not(const PlanRequest& request);
Seconds multi_ring_on_star(const PlanRequest& request, const Star& star);

Schedule plan_tree(const PlanRequest& request);
WhyNot tree_why_not(const PlanRequest& request);
Schedule plan_double_binary_tree(const PlanRequest& request);
WhyNot double_binary_tree_why_not(const PlanRequest& request);

Schedule plan_recursive_doubling(const PlanRequest& request);
WhyNot recursive_doubling_why_not(const PlanRequest& request);
Seconds recursive_doubling_on_star(const PlanRequest& request, const Star& star);

Schedule plan_halving_doubling(const PlanRequest& request);
WhyNot halving_doubling_why_not(const PlanRequest& request);
Seconds halving_doubling_on_star(const PlanRequest& request, const Star& star);

Schedule plan_hierarchical_copy(const PlanRequest& request);
WhyNot hierarchical_copy_why_not(const PlanRequest& request);
Seconds hierarchical_copy_on_star(const PlanRequest& request, const Star& star);

Schedule plan_two_level(const PlanRequest& request);
WhyNot two_level_why_not(const PlanRequest& request);

Schedule plan_reduce_to_one(const PlanRequest& request);
WhyNot reduce_to_one_why_not(const PlanRequest& request);
Seconds reduce_to_one_on_star(const PlanRequest& request, const Star& star);

Schedule plan_parameter_server(const PlanRequest& request);
WhyNot parameter_server_why_not(const PlanRequest& request);
Seconds parameter_server_on_star(const PlanRequest& request, const Star& star);

Schedule plan_torus(const PlanRequest& request);
WhyNot torus_why_not(const PlanRequest& request);
Seconds torus_on_star(const PlanRequest& request, const Star& star);

Schedule plan_in_network(const PlanRequest& request);
WhyNot in_network_why_not(const PlanRequest& request);

Schedule plan_mixed(const PlanRequest& request);
WhyNot mixed_why_not(const PlanRequest& request);

Schedule plan_nccl(const PlanRequest& request);
WhyNot nccl_why_not(const PlanRequest& request);

}  // namespace ganymede
