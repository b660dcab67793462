#pragma once
// Where the money for instance-hours went: each pool's amount is divided among the uses of its GPU time.

#include "sim/run/run_bill.hpp"

namespace ganymede::sim {

/// The bill's charge for the hours of a pool's nodes.
MicroUsd instance_hours_usd(const Bill& bill, const ScenarioPool& pool);

/// Divides the instance-hours of the bill, over all pools that have an account, into parts that sum to them exactly.
CostByUse cost_by_use(const Scenario& scenario, const RunRecord& record, const std::vector<PoolAccount>& accounts,
                      const Bill& bill);

}  // namespace ganymede::sim
