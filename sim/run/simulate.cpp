#include "sim/run/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "calibration/statistics.hpp"
#include "sim/run/costs.hpp"
#include "sim/run/life.hpp"

namespace ganymede {
namespace {

/// What makes the results of this pool less sure than its own numbers say.
std::vector<std::string> unconfirmed(const ScenarioPool& pool, const Provisioning& provisioning) {
  const Instance& instance = pool.instance();
  const Platform& platform = *pool.platform;
  const Gpu& gpu = pool.gpu();
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, const Origin*>> facts = {{gpu.name, &gpu.origin},
                                                              {instance.name, &instance.origin},
                                                              {"price", &pool.price.origin},
                                                              {"provisioning", &provisioning.origin},
                                                              {"billing", &platform.billing.origin}};
  if (pool.max_nodes > 1) {
    facts.emplace_back("fabric", &platform.fabric.origin);
    if (instance.nic) facts.emplace_back("NIC", &instance.nic->origin);
  }
  if (!platform.currency.empty())
    warnings.push_back(fmt::format("prices of {} are converted from {}", platform.name, platform.currency));
  if (!instance.retired.empty()) warnings.push_back(fmt::format("retired: {}: {}", instance.name, instance.retired));
  const bool inside = pool.pool.gpus_per_node > 1 && !instance.gpu_links;
  const bool staged = pool.max_nodes > 1 && instance.nic && !instance.nic->gpu_direct;
  if (instance.host_link && (inside || staged)) facts.emplace_back("host link", &instance.host_link->origin);
  if (const Region* region = platform.region(pool.pool.region)) facts.emplace_back("region", &region->origin);
  if (pool.pool.gpus_per_node > 1 && instance.gpu_links) facts.emplace_back("GPU links", &instance.gpu_links->origin);
  for (const auto& [what, origin] : facts)
    if (!origin->unconfirmed.empty()) warnings.push_back(fmt::format("unconfirmed: {}: {}", what, origin->unconfirmed));
  return warnings;
}

/// Gradients that are smaller or larger than the messages that the links were fitted to.
std::vector<std::string> beyond_measured_sizes(const Scenario& scenario, const Platform& platform) {
  if (!platform.measured_sizes) return {};
  const auto [smallest, largest] = *platform.measured_sizes;
  for (const std::size_t stage : scenario.stages)
    for (const TraceBucket& bucket : scenario.trace.batches[stage].buckets)
      if (const auto bytes = static_cast<double>(bucket.bytes); bytes < smallest || bytes > largest)
        return {
            fmt::format("gradients are reduced in pieces of {}, beyond the {} to {} that the links of {} were measured "
                        "with",
                        to_string(Bytes{bytes}), to_string(Bytes{smallest}), to_string(Bytes{largest}), platform.name)};
  return {};
}

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::all_reduce:
      return "all-reduce";
    case Mode::async_parameter_server:
      return "async-parameter-server";
    case Mode::local_sgd:
      return "local-sgd";
    case Mode::gossip:
      return "gossip";
  }
  return "";
}

/// The policy's name, and what is set otherwise than it would be: "predictive (usd_per_hour_waited 50)".
std::string policy_text(const PolicyChoice& choice) {
  std::string settings;
  for (std::size_t i = 0; i < choice.settings.size(); ++i)
    if (const PolicySetting& setting = choice.policy->settings[i]; choice.settings[i] != setting.default_value)
      settings += fmt::format("{}{} {:g}", settings.empty() ? "" : ", ", setting.name, choice.settings[i]);
  if (choice.blind) settings += settings.empty() ? "blind" : ", blind";
  return std::string(choice.policy->name) + (settings.empty() ? "" : " (" + settings + ")");
}

void describe(Result& result, const Scenario& scenario) {
  const ScenarioPool& first = scenario.pools.front();
  const auto joined = [&](auto&& text) {
    std::string all;
    std::set<std::string> seen;
    for (const auto& pool : scenario.pools) {
      if (pool.pool.nodes == 0) continue;
      const std::string one = text(pool);
      if (seen.insert(one).second) all += (all.empty() ? "" : " + ") + one;
    }
    return all;
  };
  result.platform = joined([](const ScenarioPool& pool) { return pool.platform->name + " " + pool.pool.region; });
  result.market = joined([](const ScenarioPool& pool) { return std::string(to_string(pool.pool.market)); });
  result.allocation =
      joined([](const ScenarioPool& pool) { return fmt::format("{} x {}", pool.pool.nodes, pool.pool.instance); });
  result.gpu = joined([](const ScenarioPool& pool) { return pool.gpu().name; });
  result.gpus = scenario.workers();
  result.launch = {scenario.trace.model,
                   scenario.trace.precision,
                   scenario.dataset.name,
                   scenario.batch().batch,
                   scenario.images_a_step(scenario.workers()),
                   {}};
  for (const auto& pool : scenario.pools)
    if (pool.pool.nodes > 0)
      result.launch.pools.push_back({pool.platform->name, pool.pool.region, pool.zone,
                                     std::string(to_string(pool.pool.market)), pool.pool.instance, pool.gpu().name,
                                     pool.pool.nodes, pool.pool.gpus_per_node});
  result.scheme = scenario.workers() > 1 ? scenario.synchronization.scheme.name() : "none";
  result.mode = name_of(scenario.synchronization.mode);
  result.placement =
      scenario.synchronization.placement == Placement::component_split ? "component-split" : "data-parallel";
  result.policy = policy_text(scenario.policy);
  result.fidelity = scenario.fidelity == Fidelity::message ? "message" : "sampled";
  for (const std::size_t stage : scenario.stages)
    result.memory = std::max(result.memory, gpu_memory(scenario.trace.batches[stage]));
  result.hash = scenario.hash;
  result.seed = scenario.seed;
  result.fabric_source = first.platform->fabric_label(first.instance(), first.max_nodes, first.pool.gpus_per_node);
  result.software = fmt::format("{} {} ({})", scenario.trace.software.name, scenario.trace.software.version,
                                scenario.trace.software.backend);
  result.prices_as_of = first.price.as_of;
  result.deadline = scenario.deadline;
  result.budget = scenario.budget;
}

/// Without repetitions, in order.
void add_warnings(Result& result, const std::vector<std::string>& more) {
  for (const auto& warning : more)
    if (std::find(result.warnings.begin(), result.warnings.end(), warning) == result.warnings.end())
      result.warnings.push_back(warning);
}

/// The same for every seed.
std::string modelled_risk(const ScenarioPool& pool) {
  const SpotClass& of = spot_model().of(pool.gpu().family);
  const std::string whose =
      of.zones > 0 ? fmt::format("{} recordings of {} on AWS in 2022 and 2023", of.zones, of.name)
                   : fmt::format("recordings of other GPUs on AWS in 2022 and 2023, spread wider: none is of {}",
                                 pool.gpu().family);
  const std::string band =
      pool.price.interrupted_per_month
          ? fmt::format(
                "; that {:.0f} % of such capacity is reclaimed in a month, as its price's source says, is not used",
                100 * *pool.price.interrupted_per_month)
          : "";
  const std::string by = fmt::format("fitted to {}{}", whose, band);
  if (pool.spot != Spot::drawn)
    return fmt::format("spot capacity of \"{}\" comes and goes as in a {} zone, {}", pool.name,
                       pool.spot == Spot::calm    ? "calm"
                       : pool.spot == Spot::harsh ? "harsh"
                                                  : "typical",
                       by);
  return fmt::format(
      "how spot capacity of \"{}\" comes and goes is assumed: each seed draws a zone, whose nodes are kept for {:.1f} "
      "h "
      "and to be had {:.0f} % of the time in the middle, {} (\"spot\" of the pool says calm, typical, harsh or a "
      "recording)",
      pool.name, of.mean_up.si / 3600, 100 * of.availability, by);
}

/// The least sure of the pools that it used or asked for.
std::string risk_of(const Scenario& scenario, const std::vector<bool>& used) {
  std::string worst = "none";
  for (std::size_t p = 0; p < scenario.pools.size(); ++p)
    if (used[p] || scenario.pools[p].pool.nodes > 0) worst = less_sure(worst, risk_of(scenario.pools[p].spot));
  return worst;
}

/// Storage that the run reads, writes or boots from.
std::vector<std::string> unconfirmed_storage(const Scenario& scenario) {
  std::vector<std::string> warnings;
  const auto add = [&](const std::optional<Storage>& storage) {
    if (storage && !storage->origin.unconfirmed.empty())
      warnings.push_back(fmt::format("unconfirmed: {}: {}", storage->name, storage->origin.unconfirmed));
  };
  add(scenario.input.storage);
  if (scenario.checkpoints.every != Checkpoints::Every::never) add(scenario.checkpoints.storage);
  add(scenario.charges.boot_disk);
  return warnings;
}

void sources(Result& result, const Scenario& scenario, ScenarioSteps& times, const Life& life,
             const std::vector<bool>& used) {
  Provenance worst = Provenance::measured;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    if (!used[p]) continue;
    const WorkloadSummary& workload = times.workload(p, scenario.stages.size() - 1);
    worst = std::max(worst, workload.provenance);
    if (result.step_source.find(workload.rule) == std::string::npos)
      result.step_source += (result.step_source.empty() ? "" : " and ") + workload.rule;
    add_warnings(result, workload.warnings);
  }
  result.inputs = to_string(worst);
  result.risk = risk_of(scenario, used);
  if (scenario.stages.size() > 1)
    add_warnings(result, {fmt::format("the lengths of the {} stages are drawn: equal or stated shares, each varied by "
                                      "up to {:.0f} % (an assumption)",
                                      scenario.stages.size(), 100 * scenario.stage_variation)});
  add_warnings(result, scenario.warnings);
  add_warnings(result, unconfirmed_storage(scenario));
  add_warnings(result, life.warnings());
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    if (!used[p]) continue;
    const ScenarioPool& pool = scenario.pools[p];
    add_warnings(result, unconfirmed(pool, pool.platform->provisioning));
    if (const std::string owned = owning_assumes(*pool.platform, pool.instance(), pool.price); !owned.empty())
      add_warnings(result, {fmt::format("owned: \"{}\" costs what it does if this holds: {}", pool.name, owned)});
    if (result.gpus > 1) add_warnings(result, beyond_measured_sizes(scenario, *pool.platform));
    if (pool.spot == Spot::uninterrupted)
      add_warnings(result, {fmt::format("no interruptions of \"{}\" are simulated, as its {} says", pool.name,
                                        pool.spot_choice ? "scenario" : "platform")});
    if (is_modelled(pool.spot)) add_warnings(result, {modelled_risk(pool)});
    if (pool.lifetimes && pool.lifetimes->source != "the scenario")
      add_warnings(result, {fmt::format("nodes of \"{}\" are taken back after {} on average, by {}", pool.name,
                                        to_string(pool.lifetimes->mean), pool.lifetimes->source)});
  }
}

/// Half-widths of the run's time: sampling alone, and the bounds of all stated error.
void intervals(Result& result, const Training& training, Nanoseconds end) {
  const RunError& error = training.error();
  const double total = to_seconds(end).si;
  const double sampling = in_quadrature(error.sampling_s, 1.96 * std::sqrt(error.own_s2));
  result.sampling_interval_s = {std::max(0.0, total - sampling), total + sampling};
  const double measured = in_quadrature(sampling, error.measured_s);
  result.interval_s = {std::max(0.0, total - measured - error.low_s), total + measured + error.high_s};
}

/// GPUs by how busy they are, hosts by how busy their processors are.
void add_energy(Result& result, const Scenario& scenario, Life& life) {
  const Nanoseconds end = life.end();
  double kwh = 0, kg = 0;
  bool known = true, hosts = true;
  for (PoolUse& use : result.pools)
    for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
      const ScenarioPool& pool = scenario.pools[p];
      if (pool.name != use.pool) continue;
      const Gpu& gpu = pool.gpu();
      const Instance& instance = pool.instance();
      const auto carbon = life.fleet().carbon(p, end);
      const Region* region = pool.platform->region(pool.pool.region);
      if (!gpu.idle || !gpu.peak || (!carbon && !(region && region->per_kwh))) {
        known = false;
        continue;
      }
      if (!carbon) known = false;
      const double pue = region ? region->pue.value_or(1) : 1;
      const GramsPerKwh intensity{carbon.value_or(0)};
      const Seconds held{use.node_hours * 3600};
      const Watts peak = scenario.power_cap ? std::min(*gpu.peak, *scenario.power_cap) : *gpu.peak;
      const double busy = std::min(1.0, life.training().device_s(p) / use.gpu_seconds.total_seconds());
      Energy used = gpu_energy({*gpu.idle, peak}, busy, instance.gpus, held, pue, intensity);
      result.gpu_kwh += used.kwh;
      use.kwh = used.kwh;
      use.kg_co2e = used.kg_co2e;
      if (instance.idle) {
        used = gpu_energy({*instance.idle, *instance.peak}, std::min(1.0, result.cpu.value_or(busy)), 1, held, pue,
                          intensity);
        result.host_kwh += used.kwh;
        *use.kwh += used.kwh;
        use.kg_co2e += used.kg_co2e;
      } else if (gpu.kind != Gpu::Kind::cpu) {
        hosts = false;
      }
      kwh += *use.kwh;
      kg += use.kg_co2e;
      if (region && !region->origin.source.empty())
        result.grid += fmt::format("{}{}: {}", result.grid.empty() ? "" : "; ", region->name, region->origin.source);
    }
  if (known)
    result.energy = Energy{kwh, kg};
  else
    add_warnings(result,
                 {"energy is not estimated: the platform states no GPU power or no grid carbon for this region"});
  if (known && !hosts)
    add_warnings(result, {"energy is of the GPUs alone: the platform states no power of their hosts"});
}

/// A run that takes longer by its stated error holds its nodes longer, at the same power.
void energy_interval(Result& result, const Scenario& scenario, const Life& life) {
  if (!result.energy) return;
  const auto at = [&](double total_s) {
    const Stretch stretch(life.trained(), static_cast<Nanoseconds>(std::llround((total_s - result.total.si) * 1e9)));
    Energy all;
    for (const PoolUse& use : result.pools)
      for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
        if (scenario.pools[p].name != use.pool || !use.kwh) continue;
        const double longer = held_longer(scenario, life, p, stretch);
        all.kwh += *use.kwh * longer;
        all.kg_co2e += use.kg_co2e * longer;
      }
    return all;
  };
  const Energy low = at(result.interval_s.low), high = at(result.interval_s.high);
  result.kwh = {low.kwh, high.kwh};
  result.kg_co2e = {low.kg_co2e, high.kg_co2e};
}

void use_of_hardware(Result& result, const Scenario& scenario, Life& life) {
  Training& training = life.training();
  const StepTotals& totals = training.totals();
  const Fleet& fleet = life.fleet();
  const Nanoseconds end = life.end();
  double peak = 0, vcpu_s = 0;
  bool vcpus = true;
  Bytes stored{0};
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    const ScenarioPool& pool = scenario.pools[p];
    const Nanoseconds held = held_with_tail(scenario, fleet, p, end);
    if (held == 0) continue;
    training.ledger(p).hold(pool.instance().gpus, held);
    PoolUse use{pool.name,
                pool.gpu().name,
                training.ledger(p).close(),
                to_seconds(held).si / 3600,
                {},
                {},
                0,
                owning_assumes(*pool.platform, pool.instance(), pool.price)};
    result.gpu_seconds += use.gpu_seconds;
    peak += peak_rate(scenario.trace, pool.gpu()).si * use.gpu_seconds.total_seconds();
    vcpus = vcpus && pool.instance().vcpus > 0;
    vcpu_s += to_seconds(held).si * pool.instance().vcpus;
    result.pools.push_back(std::move(use));
  }
  const double total_s = to_seconds(end).si;
  const double all = result.gpu_seconds.total_seconds();
  result.gpu_busy = all > 0 ? std::min(1.0, totals.device_s / all) : 0;
  result.gpu_flops = peak > 0 ? totals.flops / peak : 0;
  result.network = totals.link_s / total_s;
  if (totals.vcpu_s > 0) result.cpu_reserved = totals.vcpu_reserved_s / totals.vcpu_s;
  if (totals.memory_byte_s > 0) result.memory_reserved = totals.memory_reserved_byte_s / totals.memory_byte_s;
  if (vcpus && vcpu_s > 0) {
    result.cpu = totals.host_s / vcpu_s;
    if (*result.cpu > 1)
      add_warnings(result, {fmt::format("input and launching need {:.1f} times the vCPUs of {}: the run will be slower "
                                        "than this",
                                        *result.cpu, scenario.pools[0].pool.instance)});
  }
  add_energy(result, scenario, life);
}

Result simulate_with(const Scenario& scenario, ScenarioSteps& times) {
  Result result;
  describe(result, scenario);
  Life life(scenario, times);
  life.run();
  Training& training = life.training();
  const StepTotals& totals = training.totals();

  std::vector<bool> used;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) used.push_back(life.fleet().held(p, life.end()) > 0);
  sources(result, scenario, times, life, used);
  for (const StepDistribution* steps : life.used()) {
    if (result.spans.empty()) result.spans = steps->spans;
    result.steps_simulated += steps->simulated;
    add_warnings(result, steps->warnings);
  }
  result.gpus = std::max(1, life.most_gpus());
  result.total = to_seconds(life.end());
  result.steps = std::llround(training.steps());
  // Of images and epochs exactly the target, though a last batch may be padded.
  result.images = scenario.target == Target::steps ? std::llround(training.images()) : scenario.images;
  result.step_mean = Seconds{totals.steps > 0 ? totals.training_s / totals.steps : 0};
  if (scenario.synchronization.mode == Mode::async_parameter_server && totals.steps > 0)
    result.staleness = totals.stale_steps / totals.steps;
  result.losses = life.losses();
  result.checkpoints = totals.checkpoints;
  result.lost_training = training.lost();
  result.events = life.events();
  intervals(result, training, life.end());
  use_of_hardware(result, scenario, life);
  energy_interval(result, scenario, life);
  add_costs(result, scenario, life);
  result.met = (!scenario.deadline || result.total <= *scenario.deadline) &&
               (!scenario.budget || result.bill.total() <= *scenario.budget);
  return result;
}

}  // namespace

Result simulate(const Scenario& scenario, StepDistributionCache& cache) {
  ScenarioSteps times(scenario, cache);
  return simulate_with(scenario, times);
}

Result simulate(const Scenario& scenario) {
  StepDistributionCache cache;
  return simulate(scenario, cache);
}

Result simulate(const Scenario& scenario, const WorkloadModel& workload) {
  ScenarioSteps times(scenario, workload);
  return simulate_with(scenario, times);
}

}  // namespace ganymede
