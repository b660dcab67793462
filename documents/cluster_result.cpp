#include "documents/cluster_result.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

const About kSome = {.low = 1, .required = true};

}  // namespace

void describe(Walk& walk, JobSpread& spread) {
  walk.member("mean", spread.mean, kAmount);
  walk.member("median", spread.median, kAmount);
  walk.member("p95", spread.p95, kAmount);
  walk.member("max", spread.max, kAmount);
}

void describe(Walk& walk, ClusterSummary& summary) {
  walk.member("jobs", summary.jobs, kAmount);
  walk.member("gpus", summary.gpus, kSome);
  walk.member("begin_s", summary.begin_s, {.says = "the first arrival, from which on nodes are paid"});
  walk.member("total_s", summary.total_s, {.says = "from there to the last end", .low = 0, .required = true});
  walk.member("completion_s", summary.completion_s, {.says = "of a job, since it could first run", .required = true});
  walk.member("wait_s", summary.wait_s, {.says = "of it, without its stays", .required = true});
  walk.member("slowdown", summary.slowdown, {.says = "completion over the run alone", .required = true});
  walk.member("held", summary.held, {.says = "share of the GPUs, over the time", .low = 0, .required = true});
  walk.member("gpu_busy", summary.gpu_busy, {.says = "share of the GPUs, over the time", .low = 0, .required = true});
  walk.member("jain_fairness", summary.jain_fairness, {.says = "1 if all jobs are as fast as alone", .required = true});
  walk.member("preemptions", summary.preemptions,
              {.says = "stops, moves and changes of size", .low = 0, .required = true});
  walk.member("missed_deadlines", summary.missed_deadlines, kAmount);
}

void describe(Walk& walk, JobStay& stay) {
  walk.member("from_s", stay.from_s, kRequired);
  walk.member("to_s", stay.to_s, kRequired);
  walk.member("pool", stay.pool, kRequired);
  walk.member("gpus", stay.gpus, kSome);
  walk.member("on", stay.on, {.says = "node:GPUs", .required = true});
  walk.member_unless("packed", stay.packed, false, {.says = "a second job was on the GPU"});
  walk.member_unless("estimated", stay.estimated, false,
                     {.says = "the speeds of the two on that GPU were not measured"});
}

void describe(Walk& walk, JobLife& job) {
  walk.member("job", job.job, kRequired);
  walk.member("owner", job.owner, kRequired);
  walk.member("workload", job.workload, kRequired);
  walk.member("gpus", job.gpus, kSome);
  walk.member("arrival_s", job.arrival_s, kRequired);
  walk.member("ready_s", job.ready_s, {.says = "its arrival, or the end of what it waited for", .required = true});
  walk.member("start_s", job.start_s, {.says = "when it first ran", .required = true});
  walk.member("end_s", job.end_s, kRequired);
  walk.member("wait_s", job.wait_s, kAmount);
  walk.member("run_s", job.run_s, {.says = "the sum of its stays", .low = 0, .required = true});
  walk.member_if_any("run_low_s", job.run_low_s,
                     {.says = "with run_high_s, where run_s is to lie in 90 of 100 cases, as jobs share links"});
  walk.member_if_any("run_high_s", job.run_high_s);
  walk.member("alone_s", job.alone_s,
              {.says = "the run alone on the GPUs asked for, on its fastest pool", .required = true});
  walk.member("slowdown", job.slowdown, {.says = "from ready_s to end_s, over alone_s", .required = true});
  walk.member("gpu_hours", job.gpu_hours, kAmount);
  walk.member("preemptions", job.preemptions, kAmount);
  walk.member("restart_s", job.restart_s,
              {.says = "spent on saving, starting again and loading", .low = 0, .required = true});
  walk.member_unless("priority", job.priority, std::int64_t{0});
  walk.member_if_any("deadline_s", job.deadline_s, {.says = "from its arrival"});
  walk.member_if_any("in_time", job.in_time);
  walk.member("stays", job.stays, kRequired);
}

void describe(Walk& walk, OwnerShare& owner) {
  walk.member("owner", owner.owner, {.says = "null: nobody"});
  walk.member("jobs", owner.jobs);
  walk.member("gpu_hours", owner.gpu_hours);
  walk.member("slowdown_mean", owner.slowdown_mean);
  walk.member("usd", owner.usd, {.says = "what the GPUs that its jobs held cost", .required = true});
  walk.number_of("usd_number", owner.usd);
}

void describe(Walk& walk, QueuePoint& at) { walk.row(at.at_s, at.waiting, at.running, at.waiting_gpus, at.held_gpus); }

void describe(Walk& walk, ClusterPoolUse& use) {
  walk.member("pool", use.pool);
  walk.member("nodes", use.nodes, {.low = 1});
  walk.member("gpus_per_node", use.gpus_per_node, {.low = 1});
  walk.member("gpu", use.gpu);
  walk.member("held", use.held, {.says = "share of its GPUs, over the time"});
  walk.member("gpu_busy", use.gpu_busy, {.says = "share of its GPUs, over the time"});
}

void describe(Walk& walk, ClusterEnergy& energy) {
  walk.member("kwh", energy.kwh, {.says = "at the data centre's meter", .required = true});
  walk.member("kg_co2e", energy.kg_co2e, kRequired);
}

void describe(Walk& walk, ClusterProvenance& provenance) {
  walk.member("tool", provenance.tool, kRequired);
  walk.member("cluster_hash", provenance.cluster_hash, {.says = "of the cluster with its files"});
  walk.member("seed", provenance.seed, kRequired);
  walk.member("fidelity", provenance.fidelity, {.choices = {"sampled", "message"}});
  walk.member("messages_simulated", provenance.messages_simulated,
              {.says = "of all jobs, or of some steps of those that share links"});
  walk.member("events", provenance.events);
  walk.member("decisions", provenance.decisions);
  walk.member("contending_groups", provenance.contending_groups, {.says = "groups of jobs that shared links"});
  walk.member("approximate_groups", provenance.approximate_groups,
              {.says = "those of them that were not simulated message by message"});
  walk.member_if_any("approximate_steps_within", provenance.approximate_steps_within,
                     {.says = "the largest error of such a step, as a share of it"});
  walk.member("warnings", provenance.warnings);
}

void describe(Walk& walk, ClusterResult& result) {
  walk.constant("schema", kClusterResultSchema, kRequired);
  walk.member("scheduler", result.scheduler, kRequired);
  walk.member("placement", result.placement, kRequired);
  walk.member("summary", result.summary, kRequired);
  walk.member("jobs", result.jobs, kRequired);
  walk.member("owners", result.owners, kRequired);
  walk.object(
      "queue",
      [&] {
        walk.constant("columns", {"at_s", "waiting", "running", "waiting_gpus", "held_gpus"}, kRequired);
        walk.member("rows", result.queue, {.says = "the state from a moment on", .required = true});
      },
      kRequired);
  walk.member("pools", result.pools, kRequired);
  walk.object(
      "cost",
      [&] {
        walk.member("total_usd", result.usd, kRequired);
        walk.member("items", result.items, kRequired);
      },
      kRequired);
  walk.member("energy", result.energy, {.says = "null if the platform states no power or no carbon", .required = true});
  walk.member("provenance", result.provenance, kRequired);
}

std::string cluster_result_text(const ClusterResult& result) { return written(described(result)).dump(2) + "\n"; }

ClusterResult read_cluster_result(const JsonNode& node) {
  ClusterResult result;
  read(node, described(result), {.strict = false, .again = "simulate again with --format json"});
  return result;
}

}  // namespace ganymede::documents
