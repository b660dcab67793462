// The result of a cluster.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "documents/cluster_result.hpp"
#include "sim/cluster/cluster_record.hpp"

namespace ganymede::sim {
namespace {

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

documents::JobLife life_of(const Cluster& cluster, const ClusterRecord& record, std::size_t index) {
  const ClusterJob& job = cluster.jobs[index];
  const JobRecord& of = record.jobs[index];
  const double total_s = of.end_s - of.ready_s;
  documents::JobLife life;
  for (const Stay& stay : of.stays) {
    life.run_s += stay.to_s - stay.from_s;
    life.stays.push_back({stay.from_s, stay.to_s, cluster.pools[stay.pool].name,
                          static_cast<std::int64_t>(stay.slots.size()), slots_text(stay.slots), stay.packed,
                          stay.estimated});
  }
  life.job = job.name;
  life.owner = cluster.owners[job.owner].name;
  life.workload = cluster.workloads[job.workload].name;
  life.gpus = job.gpus;
  life.arrival_s = job.arrival_s;
  life.ready_s = of.ready_s;
  life.start_s = of.start_s;
  life.end_s = of.end_s;
  life.wait_s = std::max(0.0, total_s - life.run_s);
  life.alone_s = of.alone_s;
  life.slowdown = total_s / of.alone_s;
  life.gpu_hours = of.held_gpu_s / 3600;
  life.preemptions = of.preemptions;
  life.restart_s = of.restart_s;
  if (of.shorter_s > 0 || of.longer_s > 0) {
    life.run_low_s = std::max(0.0, life.run_s - of.shorter_s);
    life.run_high_s = life.run_s + of.longer_s;
  }
  life.priority = job.priority;
  if (job.deadline_s) {
    life.deadline_s = *job.deadline_s;
    life.in_time = of.end_s - job.arrival_s <= *job.deadline_s;
  }
  return life;
}

/// The least of the sorted values that a share of them does not exceed (nearest rank).
double quantile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

documents::JobSpread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / static_cast<double>(values.size()), quantile(values, 0.5), quantile(values, 0.95), values.back()};
}

documents::ClusterSummary summary_of(const Cluster& cluster, const ClusterRecord& record,
                                     const std::vector<documents::JobLife>& jobs) {
  std::vector<double> completion, wait, slowdown, fairness;
  documents::ClusterSummary summary;
  for (const documents::JobLife& job : jobs) {
    completion.push_back(job.end_s - job.ready_s);
    wait.push_back(job.wait_s);
    slowdown.push_back(job.slowdown);
    fairness.push_back(job.alone_s / completion.back());
    summary.preemptions += job.preemptions;
    if (!job.in_time.value_or(true)) ++summary.missed_deadlines;
  }
  double held = 0, busy = 0;
  for (const double gpu_s : record.held_gpu_s) held += gpu_s;
  for (const double gpu_s : record.busy_gpu_s) busy += gpu_s;
  const double all = record.span_s() * cluster.gpus();
  summary.jobs = static_cast<std::int64_t>(jobs.size());
  summary.gpus = cluster.gpus();
  summary.begin_s = record.begin_s;
  summary.total_s = record.span_s();
  summary.completion_s = spread_of(completion);
  summary.wait_s = spread_of(wait);
  summary.slowdown = spread_of(slowdown);
  summary.held = all > 0 ? held / all : 0;
  summary.gpu_busy = all > 0 ? busy / all : 0;
  summary.jain_fairness = jain_index(fairness);
  return summary;
}

std::vector<documents::OwnerShare> owners_of(const Cluster& cluster, const ClusterRecord& record, const Bill& bill) {
  const OwnerCosts costs = owner_costs(cluster, record, bill);
  std::vector<documents::OwnerShare> owners;
  for (std::size_t i = 0; i < cluster.owners.size(); ++i) {
    double gpu_s = 0;
    std::vector<double> slowdown;
    for (std::size_t job = 0; job < record.jobs.size(); ++job) {
      if (cluster.jobs[job].owner != i) continue;
      gpu_s += record.jobs[job].held_gpu_s;
      slowdown.push_back((record.jobs[job].end_s - record.jobs[job].ready_s) / record.jobs[job].alone_s);
    }
    owners.push_back({cluster.owners[i].name, static_cast<std::int64_t>(slowdown.size()), gpu_s / 3600,
                      spread_of(slowdown).mean, costs.owners[i]});
  }
  owners.emplace_back().usd = costs.idle;
  return owners;
}

}  // namespace

std::string cluster_result_json(const Cluster& cluster, const ClusterRecord& record) {
  documents::ClusterResult out;
  out.scheduler = cluster.scheduler.row->name;
  out.placement = cluster.placement->name;
  for (std::size_t i = 0; i < record.jobs.size(); ++i) out.jobs.push_back(life_of(cluster, record, i));
  out.summary = summary_of(cluster, record, out.jobs);
  const ClusterCosts costs = cluster_costs(cluster, record);
  out.owners = owners_of(cluster, record, costs.bill.bill);
  out.queue = record.queue;
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const ScenarioPool& pool = cluster.pools[i];
    const double all = record.span_s() * pool.pool.nodes * pool.pool.gpus_per_node;
    out.pools.push_back({pool.name, pool.pool.nodes, pool.pool.gpus_per_node, pool.gpu().name,
                         all > 0 ? record.held_gpu_s[i] / all : 0, all > 0 ? record.busy_gpu_s[i] / all : 0});
  }
  out.usd = costs.bill.bill.total();
  for (const BillItem& item : costs.bill.bill.items) out.items.push_back({item});
  if (const std::optional<Energy>& energy = costs.energy.total) out.energy = {energy->kwh, energy->kg_co2e};
  documents::ClusterProvenance& provenance = out.provenance;
  provenance = {.tool = "ganymede " GANYMEDE_VERSION,
                .cluster_hash = cluster.hash,
                .seed = cluster.seed,
                .fidelity = cluster.fidelity == Fidelity::message ? "message" : "sampled",
                .messages_simulated = record.messages,
                .events = record.events,
                .decisions = record.decisions,
                .contending_groups = static_cast<std::int64_t>(record.contending_groups),
                .approximate_groups = static_cast<std::int64_t>(record.approximate_groups),
                .approximate_steps_within = {},
                .warnings = cluster.warnings};
  const auto add = [&](const auto& warnings) {
    provenance.warnings.insert(provenance.warnings.end(), warnings.begin(), warnings.end());
  };
  add(record.warnings), add(costs.energy.warnings), add(costs.bill.warnings);
  return documents::cluster_result_text(out);
}

}  // namespace ganymede::sim
