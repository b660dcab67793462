#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "sim/run/result.hpp"

namespace ganymede::sim {
namespace {
OrderedJson pair(const Interval& interval) { return {interval.low, interval.high}; }

OrderedJson gpu_seconds_json(const GpuSeconds& account) {
  OrderedJson out;
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    out[std::string(kGpuUseNames[use])] = account.seconds(static_cast<GpuUse>(use));
  out["total"] = account.total_seconds();
  return out;
}

/// The amount in dollars, rounded as its decimal string is.
double rounded_usd(double amount) { return std::round(amount * 1e6) / 1e6; }

OrderedJson item_json(const BillItem& item) {
  const auto list_price = item.list_price.value > 0 ? item.list_price : item.unit_price;
  return {{"item", item.item},
          {"pool", item.pool},
          {"quantity", item.quantity},
          {"unit", item.unit},
          {"unit_price_usd", decimal(item.unit_price)},
          {"unit_price_usd_number", usd_of(item.unit_price)},
          {"list_price_usd", decimal(list_price)},
          {"list_price_usd_number", usd_of(list_price)},
          {"usd", decimal(item.usd)},
          {"usd_number", usd_of(item.usd)},
          {"provider", item.provider},
          {"region", item.region},
          {"market", item.market}};
}

OrderedJson cost_json(const Result& result) {
  OrderedJson out;
  out["total_usd"] = decimal(result.bill.total());
  out["interval_usd"] = {fmt::format("{:.6f}", result.cost_usd.low), fmt::format("{:.6f}", result.cost_usd.high)};
  out["usd"] = usd_of(result.bill.total());
  out["usd_interval"] = {rounded_usd(result.cost_usd.low), rounded_usd(result.cost_usd.high)};
  out["items"] = OrderedJson::array();
  for (const auto& item : result.bill.items) out["items"].push_back(item_json(item));
  OrderedJson uses, numbers;
  const auto add = [&](const std::string& use, MicroUsd amount) {
    uses[use] = decimal(amount);
    numbers[use] = usd_of(amount);
  };
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    add(std::string(kGpuUseNames[use]), result.cost_by_use.by_gpu_use[use]);
  add("idle_tail", result.cost_by_use.idle_tail);
  add("minimum_and_rounding", result.cost_by_use.minimum_and_rounding);
  out["instance_hours_by_use"] = std::move(uses);
  out["instance_hours_by_use_number"] = std::move(numbers);
  return out;
}

OrderedJson event_json(const RunEvent& event) {
  OrderedJson out = {{"at_s", event.at.si}, {"event", event.what}};
  if (!event.pool.empty()) out["pool"] = event.pool;
  if (event.nodes > 0) out["nodes"] = event.nodes;
  if (!event.detail.empty()) out["detail"] = event.detail;
  if (event.times > 1) out["times"] = event.times;
  return out;
}

OrderedJson launch_json(const LaunchRequest& launch) {
  OrderedJson out = {{"model", launch.model},
                     {"precision", launch.precision},
                     {"dataset", launch.dataset},
                     {"batch_per_gpu", launch.batch_per_gpu},
                     {"global_batch", launch.global_batch}};
  out["pools"] = OrderedJson::array();
  for (const LaunchPool& pool : launch.pools)
    out["pools"].push_back({{"provider", pool.provider},
                            {"region", pool.region},
                            {"zone", pool.zone},
                            {"market", pool.market},
                            {"instance", pool.instance},
                            {"nodes", pool.nodes},
                            {"gpu", pool.gpu},
                            {"gpus_per_node", pool.gpus_per_node}});
  return out;
}

/// Writes spans as rows that refer to names and kinds by index, because there may be many spans.
OrderedJson spans_json(const std::vector<StepSpan>& spans) {
  constexpr const char* kKinds[] = {"compute",   "host",  "communication", "exposed",
                                    "straggler", "input", "input_stall",   "lost"};
  OrderedJson out = {{"columns", {"worker", "kind", "name", "start_s", "seconds"}}};
  out["kinds"] = kKinds;
  std::vector<std::string> names;
  OrderedJson rows = OrderedJson::array();
  for (const StepSpan& span : spans) {
    auto name = std::find(names.begin(), names.end(), span.name);
    if (name == names.end()) name = names.insert(names.end(), span.name);
    rows.push_back(
        {span.worker, static_cast<int>(span.kind), name - names.begin(), span.start.si, (span.end - span.start).si});
  }
  out["names"] = names;
  out["rows"] = std::move(rows);
  return out;
}

OrderedJson spread_json(const SeedQuantiles& spread) {
  return {{"median", spread.median}, {"p5", spread.p5}, {"p95", spread.p95}, {"interval", {spread.low, spread.high}}};
}

OrderedJson seeds_json(const SeedRuns& seeds) {
  return {{"first", seeds.first},
          {"count", seeds.count},
          {"finished", seeds.finished},
          {"met", seeds.met},
          {"losses_mean", seeds.losses_mean},
          {"time_s", spread_json(seeds.time_s)},
          {"usd", spread_json(seeds.usd)}};
}

/// The value, or JSON null if there is none.
template <class Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson run_json(const Result& result) {
  return {{"platform", result.platform}, {"market", result.market},       {"allocation", result.allocation},
          {"gpu", result.gpu},           {"gpus", result.gpus},           {"scheme", result.scheme},
          {"mode", result.mode},         {"placement", result.placement}, {"policy", result.policy}};
}

OrderedJson time_json(const Result& result) {
  return {{"total_s", result.total.si},
          {"steps", result.steps},
          {"images", result.images},
          {"step_mean_s", result.step_mean.si},
          {"interval_s", pair(result.interval_s)},
          {"sampling_interval_s", pair(result.sampling_interval_s)},
          {"confidence", result.confidence},
          {"fidelity", result.fidelity},
          {"steps_simulated", result.steps_simulated}};
}

OrderedJson utilization_json(const Result& result) {
  return {{"gpu_busy", result.gpu_busy},
          {"gpu_flops", result.gpu_flops},
          {"cpu", or_null(result.cpu)},
          {"network", result.network},
          {"cpu_reserved", or_null(result.cpu_reserved)},
          {"memory_reserved", or_null(result.memory_reserved)},
          {"memory_bytes", result.memory.si}};
}

OrderedJson energy_json(const Result& result) {
  if (!result.energy) return nullptr;
  return {{"kwh", result.energy->kwh},
          {"kg_co2e", result.energy->kg_co2e},
          {"kwh_interval", pair(result.kwh)},
          {"kg_co2e_interval", pair(result.kg_co2e)},
          {"gpu_kwh", result.gpu_kwh},
          {"host_kwh", result.host_kwh},
          {"grid", result.grid}};
}

OrderedJson pools_json(const std::vector<PoolUse>& pools) {
  OrderedJson out = OrderedJson::array();
  for (const PoolUse& pool : pools) {
    out.push_back({{"pool", pool.pool},
                   {"gpu", pool.gpu},
                   {"node_hours", pool.node_hours},
                   {"gpu_seconds", gpu_seconds_json(pool.gpu_seconds)},
                   {"usd", decimal(pool.usd)},
                   {"usd_number", usd_of(pool.usd)}});
    if (!pool.owned.empty()) out.back()["owned"] = pool.owned;
  }
  return out;
}

OrderedJson goals_json(const Result& result) {
  return {{"deadline_s", result.deadline ? OrderedJson(result.deadline->si) : OrderedJson(nullptr)},
          {"budget_usd", result.budget ? OrderedJson(decimal(*result.budget)) : OrderedJson(nullptr)},
          {"budget_usd_number", result.budget ? OrderedJson(usd_of(*result.budget)) : OrderedJson(nullptr)},
          {"met", result.met}};
}

/// Images of a median training that gets to the FID, and of 90 % of these; and the share that never does.
OrderedJson quality_json(const calibration::TargetOutlook& of) {
  return {{"fid", of.fid},
          {"images", {{"median", of.images.median}, {"interval", {of.images.low, of.images.high}}}},
          {"never", 1 - of.probability}};
}

OrderedJson provenance_json(const Result& result) {
  return {{"tool", "ganymede " GANYMEDE_VERSION},
          {"scenario_hash", result.hash},
          {"seed", result.seed},
          {"inputs", result.inputs},
          {"risk", result.risk},
          {"steps", result.step_source},
          {"fabric", result.fabric_source},
          {"software", result.software},
          {"prices_as_of", result.prices_as_of},
          {"warnings", result.warnings}};
}

/// The inputs in full, by which `ganymede diff` names what differs between two results.
void add_inputs(const Result& result, OrderedJson& provenance) {
  if (result.scenario.empty()) return;
  provenance["scenario"] = OrderedJson::parse(result.scenario);
  provenance["files"] = OrderedJson(result.file_hashes);
}

OrderedJson to_json(const Result& result) {
  OrderedJson out;
  out["schema"] = "ganymede.result/1";
  out["run"] = run_json(result);
  out["launch"] = launch_json(result.launch);
  if (result.quality) out["quality"] = quality_json(*result.quality);
  out["time"] = time_json(result);
  out["utilization"] = utilization_json(result);
  out["gpu_seconds"] = gpu_seconds_json(result.gpu_seconds);
  out["gpu_hours"] = result.gpu_seconds.hours();
  out["cost"] = cost_json(result);
  out["energy"] = energy_json(result);
  out["events"] = OrderedJson::array();
  for (const auto& event : result.events) out["events"].push_back(event_json(event));
  if (!result.spans.empty()) out["step_spans"] = spans_json(result.spans);
  out["pools"] = pools_json(result.pools);
  out["life"] = {{"losses", result.losses},
                 {"checkpoints", result.checkpoints},
                 {"lost_training_s", result.lost_training.si},
                 {"staleness", or_null(result.staleness)}};
  out["goals"] = goals_json(result);
  if (result.seeds) out["seeds"] = seeds_json(*result.seeds);
  out["provenance"] = provenance_json(result);
  return out;
}

}  // namespace

std::string result_json(const Result& result) {
  OrderedJson out = to_json(result);
  add_inputs(result, out["provenance"]);
  return out.dump(2) + "\n";
}
OrderedJson result_row(const Result& result) { return to_json(result); }

}  // namespace ganymede::sim
