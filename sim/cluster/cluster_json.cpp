// The result of a cluster as `ganymede.cluster-result/1`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "sim/cluster/cluster_record.hpp"
#include "sim/cluster/contention.hpp"

namespace ganymede::sim {
namespace {

using Json = OrderedJson;

/// Node by node "3:0-3", or "3:0,2": GPUs 0 to 3 of node 3.
std::string slots_text(const std::vector<GpuSlot>& slots) {
  std::string text;
  for (std::size_t i = 0; i < slots.size();) {
    std::size_t last = i;
    while (last + 1 < slots.size() && slots[last + 1].node == slots[i].node &&
           slots[last + 1].gpu == slots[last].gpu + 1)
      ++last;
    const bool same_node = i > 0 && slots[i - 1].node == slots[i].node;
    text += same_node ? "," : fmt::format("{}{}:", text.empty() ? "" : " ", slots[i].node);
    text += last > i ? fmt::format("{}-{}", slots[i].gpu, slots[last].gpu) : std::to_string(slots[i].gpu);
    i = last + 1;
  }
  return text;
}

Json job_json(const Cluster& cluster, const ClusterRecord& record, std::size_t index) {
  const ClusterJob& job = cluster.jobs[index];
  const JobRecord& of = record.jobs[index];
  const double total_s = of.end_s - of.ready_s;
  double run_s = 0;
  Json stays = Json::array();
  for (const Stay& stay : of.stays) {
    run_s += stay.to_s - stay.from_s;
    Json row = {{"from_s", stay.from_s},
                {"to_s", stay.to_s},
                {"pool", cluster.pools[stay.pool].name},
                {"gpus", stay.slots.size()},
                {"on", slots_text(stay.slots)}};
    if (stay.packed) row["packed"] = true;
    if (stay.estimated) row["estimated"] = true;
    stays.push_back(std::move(row));
  }
  Json row = {{"job", job.name},
              {"owner", cluster.owners[job.owner].name},
              {"workload", cluster.workloads[job.workload].name},
              {"gpus", job.gpus},
              {"arrival_s", job.arrival_s},
              {"ready_s", of.ready_s},
              {"start_s", of.start_s},
              {"end_s", of.end_s},
              {"wait_s", std::max(0.0, total_s - run_s)},
              {"run_s", run_s},
              {"alone_s", of.alone_s},
              {"slowdown", total_s / of.alone_s},
              {"gpu_hours", of.held_gpu_s / 3600},
              {"preemptions", of.preemptions},
              {"restart_s", of.restart_s}};
  if (job.priority != 0) row["priority"] = job.priority;
  if (job.deadline_s) {
    row["deadline_s"] = *job.deadline_s;
    row["in_time"] = of.end_s - job.arrival_s <= *job.deadline_s;
  }
  row["stays"] = std::move(stays);
  return row;
}

/// The least of the sorted values that a share of them does not exceed (nearest rank).
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

Json spread_json(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return {{"mean", values.empty() ? 0 : sum / static_cast<double>(values.size())},
          {"median", quantile(values, 0.5)},
          {"p95", quantile(values, 0.95)},
          {"max", values.empty() ? 0 : values.back()}};
}

Json summary_json(const Cluster& cluster, const ClusterRecord& record) {
  std::vector<double> completion, wait, slowdown, fairness;
  std::int64_t preemptions = 0, late = 0;
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const JobRecord& job = record.jobs[i];
    const double total_s = job.end_s - job.ready_s;
    double run_s = 0;
    for (const Stay& stay : job.stays) run_s += stay.to_s - stay.from_s;
    completion.push_back(total_s);
    wait.push_back(std::max(0.0, total_s - run_s));
    slowdown.push_back(total_s / job.alone_s);
    fairness.push_back(job.alone_s / total_s);
    preemptions += job.preemptions;
    const auto& deadline_s = cluster.jobs[i].deadline_s;
    if (deadline_s && job.end_s - cluster.jobs[i].arrival_s > *deadline_s) ++late;
  }
  double held = 0, busy = 0;
  for (const double gpu_s : record.held_gpu_s) held += gpu_s;
  for (const double gpu_s : record.busy_gpu_s) busy += gpu_s;
  const double all = record.span_s() * cluster.gpus();
  return {{"jobs", record.jobs.size()},
          {"gpus", cluster.gpus()},
          {"begin_s", record.begin_s},
          {"total_s", record.span_s()},
          {"completion_s", spread_json(completion)},
          {"wait_s", spread_json(wait)},
          {"slowdown", spread_json(slowdown)},
          {"held", all > 0 ? held / all : 0},
          {"gpu_busy", all > 0 ? busy / all : 0},
          {"jain_fairness", jain_index(fairness)},
          {"preemptions", preemptions},
          {"missed_deadlines", late}};
}

Json cost_json(const Bill& bill) {
  Json items = Json::array();
  for (const BillItem& item : bill.items)
    items.push_back({{"item", item.item},
                     {"pool", item.pool},
                     {"quantity", item.quantity},
                     {"unit", item.unit},
                     {"unit_price_usd", decimal(item.unit_price)},
                     {"unit_price_usd_number", usd_of(item.unit_price)},
                     {"usd", decimal(item.usd)},
                     {"usd_number", usd_of(item.usd)}});
  return {{"total_usd", decimal(bill.total())}, {"usd", usd_of(bill.total())}, {"items", std::move(items)}};
}

Json owners_json(const Cluster& cluster, const ClusterRecord& record, const Bill& bill) {
  const OwnerCosts costs = owner_costs(cluster, record, bill);
  Json owners = Json::array();
  for (std::size_t i = 0; i < cluster.owners.size(); ++i) {
    double gpu_s = 0;
    std::vector<double> slowdown;
    for (std::size_t job = 0; job < record.jobs.size(); ++job) {
      if (cluster.jobs[job].owner != i) continue;
      gpu_s += record.jobs[job].held_gpu_s;
      slowdown.push_back((record.jobs[job].end_s - record.jobs[job].ready_s) / record.jobs[job].alone_s);
    }
    owners.push_back({{"owner", cluster.owners[i].name},
                      {"jobs", slowdown.size()},
                      {"gpu_hours", gpu_s / 3600},
                      {"slowdown_mean", spread_json(slowdown)["mean"]},
                      {"usd", decimal(costs.owners[i])},
                      {"usd_number", usd_of(costs.owners[i])}});
  }
  owners.push_back({{"owner", nullptr},
                    {"jobs", 0},
                    {"gpu_hours", nullptr},
                    {"slowdown_mean", nullptr},
                    {"usd", decimal(costs.idle)},
                    {"usd_number", usd_of(costs.idle)}});
  return owners;
}

}  // namespace

std::string cluster_result_json(const Cluster& cluster, const ClusterRecord& record) {
  Json out = {{"schema", "ganymede.cluster-result/1"},
              {"scheduler", cluster.scheduler.row->name},
              {"placement", cluster.placement->name},
              {"summary", summary_json(cluster, record)}};
  out["jobs"] = Json::array();
  for (std::size_t i = 0; i < record.jobs.size(); ++i) out["jobs"].push_back(job_json(cluster, record, i));
  const ClusterCosts costs = cluster_costs(cluster, record);
  out["owners"] = owners_json(cluster, record, costs.bill.bill);
  Json rows = Json::array();
  for (const QueuePoint& point : record.queue)
    rows.push_back({point.at_s, point.waiting, point.running, point.waiting_gpus, point.held_gpus});
  out["queue"] = {{"columns", {"at_s", "waiting", "running", "waiting_gpus", "held_gpus"}}, {"rows", std::move(rows)}};
  out["pools"] = Json::array();
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const ScenarioPool& pool = cluster.pools[i];
    const double all = record.span_s() * pool.pool.nodes * pool.pool.gpus_per_node;
    out["pools"].push_back({{"pool", pool.name},
                            {"nodes", pool.pool.nodes},
                            {"gpus_per_node", pool.pool.gpus_per_node},
                            {"gpu", pool.gpu().name},
                            {"held", all > 0 ? record.held_gpu_s[i] / all : 0},
                            {"gpu_busy", all > 0 ? record.busy_gpu_s[i] / all : 0}});
  }
  out["cost"] = cost_json(costs.bill.bill);
  const std::optional<Energy>& energy = costs.energy.total;
  out["energy"] = energy ? Json{{"kwh", energy->kwh}, {"kg_co2e", energy->kg_co2e}} : Json();
  Json warnings = cluster.warnings;
  for (const std::string& warning : record.warnings) warnings.push_back(warning);
  for (const std::string& warning : costs.energy.warnings) warnings.push_back(warning);
  for (const std::string& warning : costs.bill.warnings) warnings.push_back(warning);
  out["provenance"] = {{"tool", "ganymede " GANYMEDE_VERSION},
                       {"cluster_hash", cluster.hash},
                       {"seed", cluster.seed},
                       {"fidelity", cluster.fidelity == Fidelity::message ? "message" : "sampled"},
                       {"messages_simulated", record.messages},
                       {"events", record.events},
                       {"decisions", record.decisions},
                       {"contending_groups", record.contending_groups},
                       {"approximate_groups", record.approximate_groups},
                       {"approximate_steps_within", Contention::kLargestError},
                       {"warnings", std::move(warnings)}};
  return out.dump(2) + "\n";
}

}  // namespace ganymede::sim
