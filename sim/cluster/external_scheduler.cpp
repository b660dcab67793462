#include "sim/cluster/external_scheduler.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::sim {

ExternalScheduler::ExternalScheduler(const ClusterScheduler& scheduler) : scheduler_(scheduler) {
  try {
    process_ = std::make_unique<PolicyProcess>(scheduler.command);
  } catch (const PolicyFault& fault) {
    throw Failure(fmt::format("the scheduler {}", fault.what()));
  }
}

policies::JobSchedule ExternalScheduler::decide(const policies::ClusterView& view) {
  try {
    return parse_schedule(process_->exchange(view_json(view), scheduler_.limit), view);
  } catch (const PolicyFault& fault) {
    throw Failure(fmt::format("at {}: the scheduler {}", to_string(Seconds{view.now_s}), fault.what()));
  } catch (const ConfigError& error) {
    throw Failure(fmt::format("at {}: {}", to_string(Seconds{view.now_s}), error.what()));
  }
}

std::string view_json(const policies::ClusterView& view) {
  OrderedJson out = {{"now_s", view.now_s}};
  out["pools"] = OrderedJson::array();
  for (const policies::PoolState& pool : view.pools)
    out["pools"].push_back({{"name", pool.name}, {"nodes", pool.nodes}, {"gpus_per_node", pool.gpus_per_node}});
  out["owners"] = OrderedJson::array();
  for (const policies::OwnerState& owner : view.owners) {
    OrderedJson row = {{"name", owner.name}, {"used_gpu_s", owner.used_gpu_s}};
    if (owner.quota_gpus >= 0) row["quota"] = owner.quota_gpus;
    out["owners"].push_back(std::move(row));
  }
  out["jobs"] = OrderedJson::array();
  const std::vector<const policies::JobView*> jobs = policies::all_jobs(view);
  for (const policies::JobView* of : jobs) {
    const policies::JobView& job = *of;
    OrderedJson row = {{"job", job.name},
                       {"owner", view.owners[job.owner].name},
                       {"arrival_s", job.arrival_s},
                       {"gpus", job.gpus},
                       {"min_gpus", job.least},
                       {"max_gpus", job.most},
                       {"priority", job.priority},
                       {"pool", job.pool < 0 ? OrderedJson() : OrderedJson(job.pool)},
                       {"held_gpus", job.held},
                       {"attained_gpu_s", job.attained_gpu_s},
                       {"left", job.left}};
    if (job.deadline_s) row["deadline_s"] = *job.deadline_s;
    row["alone_s"] = OrderedJson::array();
    for (std::size_t pool = 0; pool < view.pools.size(); ++pool) {
      const double seconds = view.alone_s(job, pool, job.gpus);
      row["alone_s"].push_back(std::isfinite(seconds) ? OrderedJson(seconds) : OrderedJson());
    }
    out["jobs"].push_back(std::move(row));
  }
  return out.dump();
}

policies::JobSchedule parse_schedule(const std::string& line, const policies::ClusterView& view) {
  JsonObject in(JsonNode::parse(line, "the scheduler's answer"));
  policies::JobSchedule schedule;
  std::map<std::string_view, const policies::JobView*> jobs;
  for (const policies::JobView* job : policies::all_jobs(view)) jobs[job->name] = job;
  const std::vector<JsonNode> rows = in.required("run").as_array();
  for (const JsonNode& row : rows) {
    JsonObject entry(row);
    const JsonNode name_at = entry.required("job");
    const std::string name = name_at.as_string();
    const auto found = jobs.find(name);
    if (found == jobs.end()) name_at.expected("a job that is there");
    const policies::JobView* job = found->second;
    auto pool = entry.optional("pool");
    auto gpus = entry.optional("gpus");
    policies::Grant grant{job->job, 0, job->gpus};
    if (pool)
      grant.pool = static_cast<std::size_t>(pool->as_integer(0, static_cast<std::int64_t>(view.pools.size()) - 1));
    if (gpus) grant.gpus = static_cast<int>(gpus->as_integer(job->least, job->most));
    entry.finish();
    schedule.run.push_back(grant);
  }
  if (auto again = in.optional("again_in_s")) schedule.again_s = view.now_s + again->as_number(1e-3, 1e12);
  in.finish();
  return schedule;
}

}  // namespace ganymede::sim
