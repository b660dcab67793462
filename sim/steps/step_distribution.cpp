#include "sim/steps/step_distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/process.hpp"
#include "common/random.hpp"
#include "sim/steps/step_simulator.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

Json spans_json(const std::vector<StepSpan>& spans) {
  Json out = Json::array();
  for (const StepSpan& span : spans)
    out.push_back({span.worker, static_cast<int>(span.kind), span.name, span.start.si, span.end.si});
  return out;
}

// A distribution as text, from the child process that message fidelity needs for each configuration: nlohmann writes
// doubles so that they read back the same.
Json to_json(const StepDistribution& d) {
  Json pools = Json::array();
  for (const PoolStep& p : d.pools)
    pools.push_back({p.compute.si, p.exposed.si, p.straggler.si, p.stall.si, p.lost.si, p.device.si});
  return {d.mean.si,         d.low.si,           d.high.si, d.half_width,
          d.own_variance,    d.simulated,        d.precise, d.staleness,
          d.busiest_link.si, d.between_sites.si, d.host.si, d.reads,
          d.flops,           d.workers,          d.images,  pools,
          d.warnings,        spans_json(d.spans)};
}

StepDistribution from_json(const Json& in) {
  StepDistribution d;
  const auto seconds = [&](std::size_t i) { return Seconds{in[i].get<double>()}; };
  d.mean = seconds(0), d.low = seconds(1), d.high = seconds(2);
  d.half_width = in[3], d.own_variance = in[4], d.simulated = in[5], d.precise = in[6], d.staleness = in[7];
  d.busiest_link = seconds(8), d.between_sites = Bytes{in[9].get<double>()}, d.host = seconds(10);
  d.reads = in[11], d.flops = in[12], d.workers = in[13], d.images = in[14];
  for (const auto& p : in[15]) {
    PoolStep pool;
    std::size_t i = 0;
    for (Seconds* part : {&pool.compute, &pool.exposed, &pool.straggler, &pool.stall, &pool.lost, &pool.device})
      *part = Seconds{p[i++].get<double>()};
    d.pools.push_back(pool);
  }
  d.warnings = in[16].get<std::vector<std::string>>();
  for (const auto& span : in[17])
    d.spans.push_back({span[0].get<std::size_t>(), static_cast<StepSpan::Kind>(span[1].get<int>()),
                       span[2].get<std::string>(), Seconds{span[3].get<double>()}, Seconds{span[4].get<double>()}});
  return d;
}

std::string key_of(const Scenario& scenario, const Configuration& configuration) {
  std::string key = scenario.step_fingerprint;
  for (const int nodes : configuration.nodes) key += fmt::format(" {}", nodes);
  return key +
         fmt::format(" stage {} {}{} {} {} {} {} cpus {}", configuration.stage,
                     configuration.cached ? "cached" : "read", configuration.burst ? " burst" : "",
                     configuration.network, configuration.storage, configuration.slow, configuration.slow_factor,
                     configuration.cpus) +
         (scenario.servers.nodes > 0 ? fmt::format(" servers {}", scenario.servers.instance) : "") +
         (scenario.shown_steps > 0 ? fmt::format(" shown {}", scenario.shown_steps) : "");
}

constexpr std::size_t kShownWorkers = 1024;

/// The spans of the steps that the scenario wants to see, of which the first starts at 0.
void settle_spans(StepDistribution& out) {
  Seconds origin{1e300};
  for (const StepSpan& span : out.spans)
    if (span.kind != StepSpan::Kind::input) origin = std::min(origin, span.start);
  // The input pipeline works ahead: what it did before is not shown.
  for (StepSpan& span : out.spans) {
    span.start = std::max(Seconds{0}, span.start - origin);
    span.end -= origin;
  }
  std::erase_if(out.spans, [](const StepSpan& span) { return span.end <= span.start || span.worker >= kShownWorkers; });
}

StepDistribution measure(const Scenario& scenario, const Configuration& configuration,
                         const std::vector<WorkloadModel>& workloads, std::uint64_t seed) {
  Workbench bench(scenario, configuration, workloads, seed);
  StepDistribution central = bench.measure(Bound::central);
  settle_spans(central);
  const bool transferred = std::any_of(workloads.begin(), workloads.end(),
                                       [](const auto& w) { return w.provenance != Provenance::measured; });
  central.low = transferred ? bench.measure(Bound::low).mean : central.mean;
  central.high = transferred ? bench.measure(Bound::high).mean : central.mean;
  return central;
}

}  // namespace

StepTimes::StepTimes(const Scenario& scenario, const WorkloadModel* workload) : scenario_(scenario), given_(workload) {}

WorkloadModel StepTimes::workload(std::size_t pool, std::size_t stage) const {
  if (given_) return *given_;
  const ScenarioPool& where = scenario_.pools[pool];
  const Instance& instance = where.instance();
  return workload_on(scenario_.trace, scenario_.trace.batches[scenario_.stages[stage]], where.gpu(),
                     instance.host_link ? &*instance.host_link : nullptr);
}

const KnownWorkload& StepTimes::known(std::size_t pool, std::size_t stage) {
  auto& known = workloads_[{pool, stage}];
  if (known) return *known;
  static std::map<std::string, std::shared_ptr<const KnownWorkload>> of_process;
  const std::string key = fmt::format("{} {} {}", scenario_.step_fingerprint, scenario_.pools[pool].name, stage);
  if (const auto found = of_process.find(key); !given_ && found != of_process.end()) return *(known = found->second);
  WorkloadModel workload = this->workload(pool, stage);
  known = std::make_shared<KnownWorkload>(KnownWorkload{workload.central.mean_s(), workload.provenance,
                                                        workload.relative_error, std::move(workload.rule),
                                                        std::move(workload.warnings)});
  if (!given_) of_process[key] = known;
  return *known;
}

const StepDistribution& StepTimes::of(const Configuration& configuration) {
  auto& known = known_[configuration];
  if (known) return *known;
  static std::map<std::string, std::shared_ptr<const StepDistribution>> of_process;
  const std::string key = key_of(scenario_, configuration);
  const bool message = scenario_.fidelity == Fidelity::message;
  const bool shared = !given_ && !message;
  if (const auto found = of_process.find(key); shared && found != of_process.end()) return *(known = found->second);
  std::vector<WorkloadModel> workloads;
  for (std::size_t pool = 0; pool < scenario_.pools.size(); ++pool)
    workloads.push_back(configuration.nodes[pool] > 0 ? workload(pool, configuration.stage) : WorkloadModel{});
  // Message fidelity is asked for this very run; a sample is everybody's.
  const std::uint64_t seed = message || given_ ? scenario_.seed : fnv1a(key);
  if (message) {
    const std::string text =
        run_child([&] { return to_json(measure(scenario_, configuration, workloads, seed)).dump(); });
    known = std::make_shared<StepDistribution>(from_json(Json::parse(text)));
  } else {
    known = std::make_shared<StepDistribution>(measure(scenario_, configuration, workloads, seed));
  }
  if (shared) of_process[key] = known;
  return *known;
}

}  // namespace ganymede
