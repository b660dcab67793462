#include "sim/run/run_utilization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/units.hpp"

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

/// Node-nanoseconds of a pool's rentals.
struct RentedTime {
  double held = 0;     ///< all rentals
  double metered = 0;  ///< rentals that are charged
  double billed = 0;   ///< rentals that are charged, rounded as the provider does
};

RentedTime rented_time(const std::vector<Rental>& rentals, const BillingRule& rule) {
  RentedTime time;
  for (const Rental& rental : rentals) {
    const Nanoseconds until = rental.billed_until(rule);
    time.held += static_cast<double>(rental.to - rental.from);
    if (until == rental.from) continue;
    time.metered += static_cast<double>(rental.to - rental.from);
    time.billed += static_cast<double>(until - rental.from);
  }
  return time;
}

using UseWeights = std::array<double, kGpuUseNames.size()>;

/// Node-nanoseconds of each use, without the idle tail. A difference between the time on the provider's meter and the
/// time in the GPUs' account counts as provisioning, before nodes were ready. Nodes that are not charged count like the
/// others.
UseWeights use_weights(const GpuSeconds& account, int gpus, double held_ns, double tail_ns) {
  UseWeights weights{};
  for (std::size_t use = 0; use < weights.size(); ++use)
    weights[use] = account.seconds(static_cast<GpuUse>(use)) * 1e9 / gpus;
  double& idle = weights[static_cast<std::size_t>(GpuUse::idle)];
  idle = std::max(0.0, idle - tail_ns);
  double& provisioning = weights[static_cast<std::size_t>(GpuUse::provisioning)];
  provisioning = std::max(0.0, provisioning + held_ns - account.total_seconds() * 1e9 / gpus);
  return weights;
}

/// Divides `amount` in proportion to `weights`; the largest use takes the remainder of rounding.
void divide(MicroUsd amount, const UseWeights& weights, CostByUse& uses) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  MicroUsd left = amount;
  const auto largest = static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (std::size_t use = 0; use < weights.size(); ++use) {
    if (use == largest || sum <= 0) continue;
    const MicroUsd share{std::llround(static_cast<double>(amount.value) * (weights[use] / sum))};
    uses.by_gpu_use[use] += share;
    left = left - share;
  }
  uses.by_gpu_use[largest] += left;
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
    peak_flops += peak_of(*scenario.trace, pool.gpu()).si * account.gpu_seconds.total_seconds();
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

MicroUsd instance_hours_usd(const Bill& bill, const ScenarioPool& pool) {
  MicroUsd sum;
  for (const BillItem& item : bill.items)
    if (item.pool == pool.name && item.item.starts_with("instance-hours")) sum += item.usd;
  return sum;
}

CostByUse cost_by_use(const Scenario& scenario, const RunRecord& record, const std::vector<PoolAccount>& accounts,
                      const Bill& bill) {
  CostByUse uses;
  for (const PoolAccount& account : accounts) {
    const ScenarioPool& pool = scenario.pools[account.pool];
    const RentedTime time = rented_time(rentals_of(scenario, record, account.pool), billing_rule_of(pool));
    if (time.billed <= 0) continue;
    const MicroUsd amount = instance_hours_usd(bill, pool);
    const auto part = [&](double nanoseconds) {
      return MicroUsd{std::llround(static_cast<double>(amount.value) * (nanoseconds / time.billed))};
    };
    const double tail_ns =
        std::min(static_cast<double>(to_nanoseconds(scenario.charges.idle_tail)) * held_at_end(record, account.pool),
                 time.metered);
    const MicroUsd rounding = part(time.billed - time.metered), tail = part(tail_ns);
    uses.minimum_and_rounding += rounding;
    uses.idle_tail += tail;
    divide(amount - rounding - tail, use_weights(account.gpu_seconds, pool.instance().gpus, time.held, tail_ns), uses);
  }
  return uses;
}

}  // namespace ganymede::sim
