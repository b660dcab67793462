#pragma once
// How busy the hardware of a finished run was.

#include <optional>
#include <string>
#include <vector>

#include "sim/run/run_bill.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {

/// How busy what the run held was, as shares over the run's whole time.
struct RunUtilization {
  GpuSeconds gpu_seconds;  ///< the sum over all pools
  double gpu_busy = 0;     ///< share of the GPU-seconds in which a phase of the step ran, at most 1
  double gpu_flops = 0;    ///< useful FLOPs over the peak of the GPUs held
  /// Share of the vCPUs held that input and launching keep busy; none if vCPUs are not stated. Above 1: the run needs
  /// more than it has.
  std::optional<double> cpu;
  /// Shares of the training nodes' vCPUs and memory that the policy reserved; none if they are not stated.
  std::optional<double> cpu_reserved, memory_reserved;
  double network = 0;  ///< share of the run's time in which gradients keep the busiest link busy
  std::vector<std::string> warnings;
};

/// `accounts` must be those of close_accounts(scenario, record).
RunUtilization utilization_of(const Scenario& scenario, const RunRecord& record,
                              const std::vector<PoolAccount>& accounts);

// Where the money for instance-hours went: each pool's amount is divided among the uses of its GPU time.

/// The bill's charge for the hours of a pool's nodes.
MicroUsd instance_hours_usd(const Bill& bill, const ScenarioPool& pool);

/// Divides the instance-hours of the bill, over all pools that have an account, into parts that sum to them exactly.
CostByUse cost_by_use(const Scenario& scenario, const RunRecord& record, const std::vector<PoolAccount>& accounts,
                      const Bill& bill);

}  // namespace ganymede::sim
