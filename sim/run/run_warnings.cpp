#include "sim/run/run_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/units.hpp"
#include "platforms/providers.hpp"
#include "platforms/spot.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {
namespace {

/// A fact of the catalog, as a warning names it.
using NamedOrigin = std::pair<std::string, const platforms::Origin*>;

/// The facts from which the time and cost of a pool's nodes are computed.
std::vector<NamedOrigin> facts_of(const ScenarioPool& pool) {
  const platforms::Instance& instance = pool.instance();
  const platforms::Platform& platform = *pool.platform;
  const platforms::Gpu& gpu = pool.gpu();
  std::vector<NamedOrigin> facts = {{gpu.name, &gpu.origin},
                                    {instance.name, &instance.origin},
                                    {"price", &pool.price.origin},
                                    {"provisioning", &platform.provisioning.origin},
                                    {"billing", &platform.billing.origin}};
  const bool several_nodes = pool.max_nodes > 1, several_gpus = pool.pool.gpus_per_node > 1;
  if (several_nodes) {
    facts.emplace_back("fabric", &platform.fabric.origin);
    if (instance.nic) facts.emplace_back("NIC", &instance.nic->origin);
  }
  const bool gpus_meet_in_host = several_gpus && !instance.gpu_links;
  const bool staged_in_host = several_nodes && instance.nic && !instance.nic->gpu_direct;
  if (instance.host_link && (gpus_meet_in_host || staged_in_host))
    facts.emplace_back("host link", &instance.host_link->origin);
  if (const platforms::Region* region = platform.region(pool.pool.region))
    facts.emplace_back("region", &region->origin);
  if (several_gpus && instance.gpu_links) facts.emplace_back("GPU links", &instance.gpu_links->origin);
  return facts;
}

std::vector<std::string> catalog_warnings(const ScenarioPool& pool) {
  const platforms::Instance& instance = pool.instance();
  const platforms::Platform& platform = *pool.platform;
  std::vector<std::string> warnings;
  if (!platform.currency.empty())
    warnings.push_back(fmt::format("prices of {} are converted from {}", platform.name, platform.currency));
  if (!instance.retired.empty()) warnings.push_back(fmt::format("retired: {}: {}", instance.name, instance.retired));
  if (pool.max_nodes > 1 && instance.nic && instance.nic->label == "assumed")
    warnings.push_back(fmt::format("the network between nodes of {} is not known: {}", platform.name,
                                   instance.nic->origin.unconfirmed));
  if (platforms::is_of_a_host(platform.provider, instance.name))
    warnings.push_back(
        fmt::format("hosts of {} differ and may withdraw, so look at the price and the reliability of the offer",
                    platforms::vendor_of(platform.provider)));
  for (const auto& [what, origin] : facts_of(pool))
    if (!origin->unconfirmed.empty()) warnings.push_back(fmt::format("unconfirmed: {}: {}", what, origin->unconfirmed));
  return warnings;
}

/// Storage classes that the run reads, writes or boots from and whose facts are unconfirmed.
std::vector<std::string> storage_warnings(const Scenario& scenario) {
  std::vector<std::string> warnings;
  const auto add = [&](const std::optional<platforms::Storage>& storage) {
    if (storage && !storage->origin.unconfirmed.empty())
      warnings.push_back(fmt::format("unconfirmed: {}: {}", storage->name, storage->origin.unconfirmed));
  };
  add(scenario.input.storage);
  if (scenario.checkpoints.every != Checkpoints::Every::never) add(scenario.checkpoints.storage);
  add(scenario.charges.boot_disk);
  return warnings;
}

/// Warns of the first gradient that is smaller or larger than the messages that the platform's links were fitted to.
std::vector<std::string> message_size_warnings(const Scenario& scenario, const platforms::Platform& platform) {
  if (!platform.measured_sizes) return {};
  const auto [smallest, largest] = *platform.measured_sizes;
  for (const std::size_t stage : scenario.stages)
    for (const traces::TraceBucket& bucket : scenario.trace->batches[stage].buckets)
      if (const auto bytes = static_cast<double>(bucket.bytes); bytes < smallest || bytes > largest)
        return {
            fmt::format("gradients are reduced in pieces of {}, beyond the {} to {} that the links of {} were measured "
                        "with",
                        to_string(Bytes{bytes}), to_string(Bytes{smallest}), to_string(Bytes{largest}), platform.name)};
  return {};
}

/// Names the source of the model of a pool's spot capacity. The text does not depend on the seed.
std::string spot_model_warning(const ScenarioPool& pool) {
  const platforms::SpotClass& of = platforms::spot_model().of(pool.gpu().family);
  const std::string recordings =
      of.zones > 0 ? fmt::format("{} recordings of {} on AWS in 2022 and 2023", of.zones, of.name)
                   : fmt::format("recordings of other GPUs on AWS in 2022 and 2023, spread wider: none is of {}",
                                 pool.gpu().family);
  const std::string unused_band =
      pool.price.interrupted_per_month
          ? fmt::format(
                "; that {:.0f} % of such capacity is reclaimed in a month, as its price's source says, is not used",
                100 * *pool.price.interrupted_per_month)
          : "";
  const platforms::Provider& provider = platforms::provider_of(pool.platform->provider);
  const std::string bids = provider.bids.empty()
                               ? ""
                               : fmt::format(
                                     "; {} takes bids: {}; how often is not published, and each machine is taken "
                                     "to come and go by itself as such zones do",
                                     provider.vendor, provider.bids);
  const std::string source = fmt::format("fitted to {}{}{}", recordings, unused_band, bids);
  if (pool.past) {
    const platforms::SpotClass one = platforms::spot_model().given(of, *pool.past);
    return fmt::format(
        "spot capacity of \"{}\" comes and goes as in zones that one with the recorded past may be: each seed draws "
        "one, whose nodes are kept for {:.1f} h and to be had {:.0f} % of the time in the middle",
        pool.name, one.mean_up.si / 3600, 100 * one.availability);
  }
  if (pool.spot != Spot::drawn)
    return fmt::format("spot capacity of \"{}\" comes and goes as in a {} zone, {}", pool.name,
                       pool.spot == Spot::calm    ? "calm"
                       : pool.spot == Spot::harsh ? "harsh"
                                                  : "typical",
                       source);
  return fmt::format(
      "how spot capacity of \"{}\" comes and goes is assumed: each seed draws a zone, whose nodes are kept for {:.1f} "
      "h and to be had {:.0f} % of the time in the middle, {} (\"spot\" of the pool says calm, typical, harsh or a "
      "recording)",
      pool.name, of.mean_up.si / 3600, 100 * of.availability, source);
}

std::vector<std::string> pool_warnings(const Scenario& scenario, const ScenarioPool& pool) {
  std::vector<std::string> warnings = catalog_warnings(pool);
  if (const std::string owned = platforms::owning_assumes(*pool.platform, pool.instance(), pool.price); !owned.empty())
    warnings.push_back(fmt::format("owned: \"{}\" costs what it does if this holds: {}", pool.name, owned));
  if (scenario.workers() > 1) append_new(warnings, message_size_warnings(scenario, *pool.platform));
  if (const auto& nic = pool.instance().nic; pool.max_nodes > 1 && nic && nic->burst)
    warnings.push_back(fmt::format(
        "NICs of {} send {} while their credits last, which is taken to be {} of it, then {}", pool.pool.instance,
        to_string(*nic->burst), to_string(platforms::Nic::kFullBurst), to_string(nic->bandwidth)));
  if (pool.spot == Spot::uninterrupted)
    warnings.push_back(fmt::format("no interruptions of \"{}\" are simulated, as its {} says", pool.name,
                                   pool.spot_choice ? "scenario" : "platform"));
  if (is_modelled(pool.spot)) warnings.push_back(spot_model_warning(pool));
  if (pool.lifetimes && pool.lifetimes->source != "the scenario")
    warnings.push_back(fmt::format("nodes of \"{}\" are taken back after {} on average, by {}", pool.name,
                                   to_string(pool.lifetimes->mean), pool.lifetimes->source));
  return warnings;
}

}  // namespace

void append_new(std::vector<std::string>& warnings, const std::vector<std::string>& more) {
  for (const std::string& warning : more)
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
}

std::vector<std::string> warnings_of(const Scenario& scenario, const RunRecord& record) {
  std::vector<std::string> warnings;
  for (const auto& workload : record.workloads)
    if (workload) append_new(warnings, workload->warnings);
  if (scenario.stages.size() > 1)
    warnings.push_back(
        fmt::format("the lengths of the {} stages are drawn: equal or stated shares, each varied by "
                    "up to {:.0f} % (an assumption)",
                    scenario.stages.size(), 100 * scenario.stage_variation));
  append_new(warnings, scenario.warnings);
  append_new(warnings, storage_warnings(scenario));
  if (record.events_truncated) warnings.push_back(fmt::format("only the first {} events are listed", kMaxListedEvents));
  for (std::size_t p = 0; p < scenario.pools.size(); ++p)
    if (record.workloads[p]) append_new(warnings, pool_warnings(scenario, scenario.pools[p]));
  for (const StepDistribution* steps : record.distributions) append_new(warnings, steps->warnings);
  return warnings;
}

std::string step_inputs(const RunRecord& record) {
  calibration::Provenance worst = calibration::Provenance::measured;
  for (const auto& workload : record.workloads)
    if (workload) worst = std::max(worst, workload->provenance);
  return std::string(calibration::to_string(worst));
}

std::string step_source(const RunRecord& record) {
  std::string source;
  for (const auto& workload : record.workloads)
    if (workload && source.find(workload->rule) == std::string::npos)
      source += (source.empty() ? "" : " and ") + workload->rule;
  return source;
}

std::string interruption_risk(const Scenario& scenario, const RunRecord& record) {
  std::string worst = "none";
  for (std::size_t p = 0; p < scenario.pools.size(); ++p)
    if (record.workloads[p] || scenario.pools[p].pool.nodes > 0)
      worst = less_sure(worst, risk_of(scenario.pools[p].spot));
  return worst;
}

}  // namespace ganymede::sim
