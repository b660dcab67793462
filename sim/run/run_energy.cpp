#include "sim/run/run_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// Mean carbon intensity (g/kWh) of a pool's region over the time that its nodes were held; none where it is not known.
std::optional<double> mean_carbon(const ScenarioPool& pool, const RunRecord& record, std::size_t index) {
  if (!pool.carbon) {
    const platforms::Region* region = pool.platform->region(pool.pool.region);
    return region && region->carbon ? std::optional<double>(region->carbon->si) : std::nullopt;
  }
  double grams = 0, seconds = 0;
  for (const Node& node : record.nodes)
    if (node.pool == index && node.granted != kNever) {
      const Nanoseconds to = std::min(node.gone, record.end);
      grams += integral(*pool.carbon, to_seconds(node.granted), to_seconds(to));
      seconds += to_seconds(to - node.granted).si;
    }
  return seconds > 0 ? grams / seconds : pool.carbon->at(Seconds{0});
}

/// For how long and under which conditions electricity is drawn.
struct Meter {
  Seconds held;
  double pue;
  GramsPerKwh intensity;

  Energy energy(const DevicePower& power, double busy, std::int64_t devices) const {
    return device_energy(power, busy, devices, held, pue, intensity);
  }
};

/// Adds one pool's energy to `all`. Returns false if not all of it is known.
bool add_pool_energy(RunEnergy& all, Energy& sum, const ScenarioPool& pool, const PoolAccount& account,
                     const RunRecord& record, const std::optional<Watts>& power_cap, std::optional<double> cpu) {
  const platforms::Gpu& gpu = pool.gpu();
  const platforms::Instance& instance = pool.instance();
  const platforms::Region* region = pool.platform->region(pool.pool.region);
  const std::optional<double> carbon = mean_carbon(pool, record, account.pool);
  if (!gpu.idle || !gpu.peak || (!carbon && !(region && region->per_kwh))) return false;

  const Seconds held = to_seconds(account.held);
  const Meter meter{held, region ? region->pue.value_or(1) : 1, GramsPerKwh{carbon.value_or(0)}};
  const Watts peak = power_cap ? std::min(*gpu.peak, *power_cap) : *gpu.peak;
  // GPUs that evaluate the model work as hard as those that train it.
  const double busy_s = record.device_s[account.pool] + account.gpu_seconds.seconds(GpuUse::evaluation);
  const double busy = std::min(1.0, busy_s / account.gpu_seconds.total_seconds());
  const Energy gpus = meter.energy({*gpu.idle, peak}, busy, instance.gpus);
  all.gpu_kwh += gpus.kwh;
  Energy whole = gpus;
  if (instance.idle) {
    const double used = busy_s / (held.si * pool.pool.gpus_per_node);
    const Energy hosts = meter.energy({*instance.idle, *instance.peak}, std::min(1.0, cpu.value_or(used)), 1);
    all.host_kwh += hosts.kwh;
    whole.kwh += hosts.kwh;
    whole.kg_co2e += hosts.kg_co2e;
  }
  sum.kwh += whole.kwh;
  sum.kg_co2e += whole.kg_co2e;
  all.pools[account.pool] = whole;
  if (region && !region->origin.source.empty())
    all.grid += fmt::format("{}{}: {}", all.grid.empty() ? "" : "; ", region->name, region->origin.source);
  return carbon.has_value();
}

/// The energy of the run as if it had taken `total_s` seconds.
Energy energy_at(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, double total_s) {
  const double longer_s = total_s - to_seconds(record.end).si;
  const Stretch stretch(record.trained, static_cast<Nanoseconds>(std::llround(longer_s * 1e9)));
  Energy all;
  for (std::size_t p = 0; p < energy.pools.size(); ++p) {
    if (!energy.pools[p]) continue;
    const double ratio = held_ratio(scenario, record, p, stretch);
    all.kwh += energy.pools[p]->kwh * ratio;
    all.kg_co2e += energy.pools[p]->kg_co2e * ratio;
  }
  return all;
}

}  // namespace

RunEnergy energy_of(const Scenario& scenario, const RunRecord& record, const std::vector<PoolAccount>& accounts,
                    const std::vector<std::optional<double>>& cpu, const Interval& time_s) {
  RunEnergy energy;
  energy.pools.resize(scenario.pools.size());
  Energy sum;
  bool known = true, hosts_known = true;
  for (const PoolAccount& account : accounts) {
    const ScenarioPool& pool = scenario.pools[account.pool];
    known = add_pool_energy(energy, sum, pool, account, record, scenario.power_cap, cpu[account.pool]) && known;
    if (energy.pools[account.pool] && !pool.instance().idle && pool.gpu().kind != platforms::Gpu::Kind::cpu)
      hosts_known = false;
  }
  if (!known) {
    energy.warnings.push_back(
        "energy is not estimated: the platform states no GPU power or no grid carbon for this "
        "region");
    return energy;
  }
  energy.total = sum;
  if (!hosts_known)
    energy.warnings.push_back("energy is of the GPUs alone: the platform states no power of their hosts");
  const Energy low = energy_at(scenario, record, energy, time_s.low);
  const Energy high = energy_at(scenario, record, energy, time_s.high);
  energy.kwh = {low.kwh, high.kwh};
  energy.kg_co2e = {low.kg_co2e, high.kg_co2e};
  return energy;
}

}  // namespace ganymede::sim
