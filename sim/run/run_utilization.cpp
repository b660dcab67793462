#include "sim/run/run_utilization.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ganymede::sim {
namespace {

/// The peak of a GPU for the precisions of the step's kernels, each with its share of the FLOPs.
FlopsPerSecond peak_of(const traces::StepTrace& trace, const platforms::Gpu& gpu) {
  double flops = 0, seconds = 0;
  bool mixed = false;
  for (const traces::TraceKernel& kernel : trace.kernels) {
    const double work = kernel.times * kernel.flops();
    const std::string& precision = kernel.precision.empty() ? trace.precision : kernel.precision;
    flops += work, seconds += work / calibration::peak_rate(precision, gpu).si;
    mixed = mixed || (work > 0 && precision != trace.precision);
  }
  return mixed ? FlopsPerSecond{flops / seconds} : calibration::peak_rate(trace, gpu);
}

}  // namespace

RunUtilization utilization_of(const Scenario& scenario, const RunRecord& record,
                              const std::vector<PoolAccount>& accounts) {
  RunUtilization use;
  const StepTotals& totals = record.totals;
  double peak_flops = 0, vcpu_s = 0;
  bool vcpus_known = true;
  for (const PoolAccount& account : accounts) {
    const ScenarioPool& pool = scenario.pools[account.pool];
    use.gpu_seconds += account.gpu_seconds;
    peak_flops += peak_of(scenario.trace, pool.gpu()).si * account.gpu_seconds.total_seconds();
    vcpus_known = vcpus_known && pool.instance().vcpus > 0;
    vcpu_s += to_seconds(account.held).si * pool.instance().vcpus;
  }
  const double all_s = use.gpu_seconds.total_seconds();
  use.gpu_busy = all_s > 0 ? std::min(1.0, totals.device_s / all_s) : 0;
  use.gpu_flops = peak_flops > 0 ? totals.flops / peak_flops : 0;
  use.network = totals.link_s / to_seconds(record.end).si;
  if (totals.vcpu_s > 0) use.cpu_reserved = totals.vcpu_reserved_s / totals.vcpu_s;
  if (totals.memory_byte_s > 0) use.memory_reserved = totals.memory_reserved_byte_s / totals.memory_byte_s;
  if (!vcpus_known || vcpu_s <= 0) return use;
  use.cpu = totals.host_s / vcpu_s;
  if (*use.cpu > 1)
    use.warnings.push_back(
        fmt::format("input and launching need {:.1f} times the vCPUs of {}: the run will be slower than this", *use.cpu,
                    scenario.pools[0].pool.instance));
  return use;
}

}  // namespace ganymede::sim
