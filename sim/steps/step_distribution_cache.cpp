#include "sim/steps/step_distribution_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "calibration/statistics.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "sim/engine/simgrid_module.hpp"
#include "sim/steps/gradient_passes.hpp"
#include "sim/steps/step_simulator.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMaxShownWorkers = 1024;

/// The same nodes, counted as the first pool's: where all that train are like its nodes and in one place with them, it
/// does not matter to a step of synchronous data-parallel training which pool a node is of.
Configuration in_first_pool(const Scenario& scenario, Configuration configuration) {
  const Synchronization& sync = scenario.synchronization;
  if (sync.mode != Mode::all_reduce || sync.placement != Placement::data_parallel || scenario.servers.nodes > 0 ||
      configuration.slow > 0)
    return configuration;
  const ScenarioPool& first = scenario.pools.front();
  for (std::size_t p = 1; p < scenario.pools.size(); ++p)
    if (configuration.nodes[p] > 0 && !(same_place(first, scenario.pools[p]) && same_nodes(first, scenario.pools[p])))
      return configuration;
  const int nodes = std::accumulate(configuration.nodes.begin(), configuration.nodes.end(), 0);
  std::fill(configuration.nodes.begin(), configuration.nodes.end(), 0);
  configuration.nodes.front() = nodes;
  return configuration;
}

/// The distribution of nodes that were counted as the first pool's, for the pools whose they are.
StepDistribution by_pools(StepDistribution steps, const std::vector<int>& nodes) {
  const PoolStep all = steps.pools.front();
  const double count = std::accumulate(nodes.begin(), nodes.end(), 0);
  steps.pools.assign(nodes.size(), {});
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const double share = nodes[p] / count;
    steps.pools[p] = {share * all.compute, share * all.exposed, share * all.straggler,
                      share * all.stall,   share * all.lost,    share * all.device};
  }
  return steps;
}

/// The cache key: everything that the steps of a configuration depend on, as text. Pools without nodes at the end of
/// the scenario's, which only its policy may use, say nothing.
std::string key_of(const Scenario& scenario, const Configuration& configuration) {
  std::string key = scenario.step_fingerprint;
  std::size_t pools = configuration.nodes.size();
  while (pools > 1 && configuration.nodes[pools - 1] == 0) --pools;
  for (std::size_t p = 0; p < pools; ++p) key += fmt::format(" {}", configuration.nodes[p]);
  key += fmt::format(" stage {} {}{}{} {} {} {} {} cpus {}", configuration.stage,
                     configuration.cached ? "cached" : "read", configuration.burst ? " burst" : "",
                     configuration.nic_burst ? " nic burst" : "", configuration.network, configuration.storage,
                     configuration.slow, configuration.slow_factor, configuration.cpus);
  if (scenario.servers.nodes > 0) key += fmt::format(" servers {}", scenario.servers.instance);
  if (scenario.shown_steps > 0) key += fmt::format(" shown {}", scenario.shown_steps);
  return key;
}

/// The part of a key for steps that are not as the trace says (ScenarioPool::step_factor); else empty.
std::string factors_of(const Scenario& scenario) {
  std::string key;
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.step_factor != 1) key += fmt::format(" {} x {}", pool.name, pool.step_factor);
  return key;
}

/// Moves the spans of shown steps so that the first step starts at 0. Cuts off what lies before, where the input
/// pipeline works ahead, and drops the spans of workers beyond the first kMaxShownWorkers.
void align_spans(StepDistribution& out) {
  Seconds origin{1e300};
  for (const StepSpan& span : out.spans)
    if (span.kind != StepSpan::Kind::input) origin = std::min(origin, span.start);
  for (StepSpan& span : out.spans) {
    span.start = std::max(Seconds{0}, span.start - origin);
    span.end -= origin;
  }
  std::erase_if(out.spans,
                [](const StepSpan& span) { return span.end <= span.start || span.worker >= kMaxShownWorkers; });
}

}  // namespace

StepDistributionCache::Distribution StepDistributionCache::distribution(const std::string& key,
                                                                        const std::function<StepDistribution()>& make) {
  if (const auto known = distributions_.find(key); known != distributions_.end()) return known->second;
  auto made = std::make_shared<const StepDistribution>(make());
  new_.push_back(key);
  return distributions_[key] = std::move(made);
}

StepDistributionCache::Distribution StepDistributionCache::find(const std::string& key) const {
  const auto known = distributions_.find(key);
  return known == distributions_.end() ? nullptr : known->second;
}

Json StepDistributionCache::take_new() {
  Json out = Json::object();
  for (const std::string& key : new_) out[key] = to_text(*distributions_.at(key));
  new_.clear();
  return out;
}

void StepDistributionCache::take_in(const Json& added) {
  for (const auto& [key, text] : added.items())
    distributions_.try_emplace(key,
                               std::make_shared<const StepDistribution>(parse_distribution(text.get<std::string>())));
}

StepDistributionCache::Workload StepDistributionCache::workload(const std::string& key,
                                                                const std::function<WorkloadSummary()>& make) {
  if (const auto known = workloads_.find(key); known != workloads_.end()) return known->second;
  return workloads_[key] = std::make_shared<const WorkloadSummary>(make());
}

calibration::WorkloadModel ScenarioSteps::model(std::size_t pool, std::size_t stage) const {
  if (given_) return in_passes(*given_, scenario_);
  const ScenarioPool& where = scenario_.pools[pool];
  const platforms::Instance& instance = where.instance();
  const platforms::Link* host_link = instance.host_link ? &*instance.host_link : nullptr;
  const std::size_t batch = scenario_.stages[stage];
  calibration::WorkloadModel workload = in_passes(
      cache_ ? cache_->models(scenario_).on(*scenario_.trace, batch, where.gpu(), host_link)
             : calibration::workload_on(*scenario_.trace, scenario_.trace->batches[batch], where.gpu(), host_link),
      scenario_);
  if (where.step_factor != 1)
    for (calibration::StepModel* step : {&workload.central, &workload.low, &workload.high})
      slow_down(*step, where.step_factor);
  return workload;
}

const WorkloadSummary& ScenarioSteps::workload(std::size_t pool, std::size_t stage) {
  auto& known = workloads_[{pool, stage}];
  if (known) return *known;
  const auto make = [&] {
    calibration::WorkloadModel workload = model(pool, stage);
    return WorkloadSummary{workload.central.mean_s(), workload.provenance, workload.relative_error,
                           std::move(workload.rule), std::move(workload.warnings)};
  };
  if (cache_)
    known = cache_->workload(
        fmt::format("{} {} {}{}", scenario_.step_fingerprint, scenario_.pools[pool].name, stage, factors_of(scenario_)),
        make);
  else
    known = std::make_shared<const WorkloadSummary>(make());
  return *known;
}

std::vector<calibration::WorkloadModel> ScenarioSteps::models(const Configuration& configuration) const {
  std::vector<calibration::WorkloadModel> workloads;
  for (std::size_t pool = 0; pool < scenario_.pools.size(); ++pool)
    workloads.push_back(configuration.nodes[pool] > 0 ? model(pool, configuration.stage)
                                                      : calibration::WorkloadModel{});
  return workloads;
}

StepDistribution ScenarioSteps::simulate(const Configuration& configuration, std::uint64_t seed, bool interval,
                                         const StepDistributionCache::Distribution& known) const {
  const std::vector<calibration::WorkloadModel> workloads = models(configuration);
  const bool transferred = std::any_of(
      workloads.begin(), workloads.end(),
      [](const calibration::WorkloadModel& workload) { return !calibration::is_of_the_device(workload.provenance); });
  StepSimulator simulator(scenario_, configuration, workloads, seed);
  if (cache_) simulator.share(cache_->reductions());
  StepDistribution central = known ? *known : simulator.simulate(Bound::central);
  if (!known) align_spans(central);
  central.low = central.high = central.mean;
  if (!interval) return central;
  if (!transferred) {
    central.error *= 1.96 / 1.645;  // the interval of a measured step holds 95 %, that of any other 90 %
    return central;
  }
  const double error = std::exchange(central.error, 0);
  const auto end = [&](Bound bound, double sign) {
    const Seconds mean = simulator.simulate(bound).mean;
    if (error == 0) return mean;
    return portable_exp(sign * calibration::in_quadrature(portable_log(mean / central.mean), error)) * central.mean;
  };
  central.low = end(Bound::low, -1);
  central.high = end(Bound::high, 1);
  return central;
}

const StepDistribution& ScenarioSteps::distribution(const Configuration& configuration) {
  auto& known = distributions_[configuration];
  if (known) return *known;
  if (scenario_.fidelity == Fidelity::message) {
    // SimGrid allows one engine in a process, so each configuration has a child of its own; all take over the module.
    simgrid_module();
    const std::string text = run_child([&] { return to_text(simulate(configuration, scenario_.seed)); });
    known = std::make_shared<const StepDistribution>(parse_distribution(text));
  } else if (cache_) {
    // The factors are no part of the seed, so that longer steps are the same draws.
    const Configuration alike = in_first_pool(scenario_, configuration);
    const std::string key = key_of(scenario_, alike);
    const std::string name = key + factors_of(scenario_), no_interval = name + " without interval";
    if (intervals_ || cache_->find(name))
      known = cache_->distribution(
          name, [&] { return simulate(alike, fnv1a(key), /*interval=*/true, cache_->find(no_interval)); });
    else
      known = cache_->distribution(no_interval, [&] { return simulate(alike, fnv1a(key), /*interval=*/false); });
    if (alike.nodes != configuration.nodes) {
      known = std::make_shared<const StepDistribution>(by_pools(*known, configuration.nodes));
    } else if (known->pools.size() != scenario_.pools.size()) {  // it is from a scenario with fewer pools, or with more
      StepDistribution steps = *known;
      steps.pools.resize(scenario_.pools.size());
      known = std::make_shared<const StepDistribution>(std::move(steps));
    }
  } else {
    known = std::make_shared<const StepDistribution>(simulate(configuration, scenario_.seed));
  }
  return *known;
}

}  // namespace ganymede::sim
