#include "sim/cluster/cluster_state.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::sim {
namespace {

int group_of(const ScenarioPool& pool) {
  const auto& levels = pool.platform->fabric.levels;
  return levels.empty() ? 0 : levels.front().nodes;
}

std::vector<SharedLink> links_of(const ClusterContext& context) {
  std::vector<SharedLink> links;
  for (const auto& fabric : context.fabrics)
    if (fabric)
      for (const DirectedLink& link : fabric->links())
        links.push_back({link.bandwidth.si, link.name == "switch" || link.name.starts_with("level_")});
  return links;
}

std::vector<policies::JobView> views_of(const Cluster& cluster) {
  std::vector<policies::JobView> views(cluster.jobs.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    const ClusterJob& job = cluster.jobs[i];
    policies::JobView& view = views[i];
    view.job = i;
    view.name = job.name;
    view.gpus = job.gpus;
    view.least = job.least;
    view.most = job.most;
    view.priority = job.priority;
    view.deadline_s = job.deadline_s;
    view.owner = job.owner;
  }
  return views;
}

}  // namespace

ClusterContext context_of(const Cluster& cluster, JobSpeeds& speeds, JobRunner* runner) {
  ClusterContext context{.cluster = cluster, .speeds = speeds, .runner = runner};
  context.unlocks.resize(cluster.jobs.size());
  for (std::size_t i = 0; i < cluster.jobs.size(); ++i)
    for (const std::size_t before : cluster.jobs[i].after) context.unlocks[before].push_back(i);
  const bool talks = std::any_of(cluster.workloads.begin(), cluster.workloads.end(),
                                 [](const ClusterWorkload& workload) { return workload.scenario != nullptr; });
  int links = 0;
  for (const ScenarioPool& pool : cluster.pools) {
    context.first_link.push_back(links);
    context.fabrics.emplace_back();
    if (!talks || !cluster.contention) continue;
    context.fabrics.back() =
        std::make_unique<FabricGraph>(*pool.platform, pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node);
    links += static_cast<int>(context.fabrics.back()->links().size());
  }
  return context;
}

ClusterState initial_state(const ClusterContext& context) {
  const Cluster& cluster = context.cluster;
  const policies::Scheduler& scheduler = *cluster.scheduler.row;
  ClusterState state{.record = {},
                     .jobs = std::vector<JobState>(cluster.jobs.size()),
                     .nodes = {},
                     .running = {},
                     .contention = Contention(links_of(context)),
                     .beat_messages_left = cluster.beat_messages,
                     .pools = {},
                     .owners = cluster.owners,
                     .views = views_of(cluster),
                     .waiting = policies::WaitingJobs(scheduler.kinds, cluster.owners)};
  state.record.jobs.resize(cluster.jobs.size());
  for (auto* by_pool : {&state.record.held_gpu_s, &state.record.busy_gpu_s, &state.record.host_s})
    by_pool->assign(cluster.pools.size(), 0);
  for (std::size_t i = 0; i < cluster.jobs.size(); ++i)
    state.jobs[i].blocked_by = static_cast<int>(cluster.jobs[i].after.size());
  for (const ScenarioPool& pool : cluster.pools) {
    state.nodes.emplace_back(pool.pool.nodes, pool.pool.gpus_per_node, group_of(pool));
    state.pools.push_back({pool.name, pool.pool.nodes, pool.pool.gpus_per_node});
  }
  if (scheduler.decide == nullptr) state.external = std::make_unique<ExternalScheduler>(cluster.scheduler);
  return state;
}

Nanoseconds clock_at(double seconds) {
  if (std::isinf(seconds)) return kNever;
  return to_nanoseconds(std::min(Seconds{seconds}, to_seconds(kLongestLife) + Seconds{1}));
}

Nanoseconds arrival_of(const ClusterJob& job) {
  const Nanoseconds at = clock_at(job.arrival_s);
  return to_seconds(at).si < job.arrival_s ? at + 1 : at;
}

RunningJob* find_running(ClusterState& state, std::size_t job) {
  for (RunningJob& running : state.running)
    if (running.job == job) return &running;
  return nullptr;
}

MeasuredModel model_of(const Cluster& cluster, std::size_t job) {
  const ClusterWorkload& workload = cluster.workloads[cluster.jobs[job].workload];
  return {workload.model, workload.batch};
}

}  // namespace ganymede::sim
