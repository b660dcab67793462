#include "documents/result.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
void describe(Walk& walk, GpuTime& time) {
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) walk.member(kGpuUseNames[use], time.by_use[use]);
  walk.member("total", time.total, {.required = true});
}

void describe(Walk& walk, LaunchPool& pool) {
  walk.member("provider", pool.provider, kRequired);
  walk.member("region", pool.region, kRequired);
  walk.member("zone", pool.zone);
  walk.member("market", pool.market, kRequired);
  walk.member("instance", pool.instance, kRequired);
  walk.member("nodes", pool.nodes, {.low = 1, .required = true});
  walk.member("gpu", pool.gpu, kRequired);
  walk.member("gpus_per_node", pool.gpus_per_node, {.low = 1, .required = true});
}

void describe(Walk& walk, LaunchRequest& launch) {
  walk.member("model", launch.model, kRequired);
  walk.member("precision", launch.precision);
  walk.member("dataset", launch.dataset);
  walk.member("batch_per_gpu", launch.batch_per_gpu, {.says = "images", .low = 1, .required = true});
  walk.member("global_batch", launch.global_batch, {.says = "images of a step on the nodes asked for", .low = 1});
  walk.member("pools", launch.pools, {.says = "those asked for", .required = true});
}

void describe(Walk& walk, QualityTarget& quality) {
  walk.member("fid", quality.fid, {.says = "the goal", .low = 0, .above_low = true, .required = true});
  walk.object("images",
              [&] {
                walk.member("median", quality.images, {.low = 0, .required = true});
                walk.member("interval", quality.images_interval, {.low = 0, .required = true});
              },
              {.says = "of a median training that gets there, and of 90 % of these", .required = true});
  walk.member("never", quality.never,
              {.says = "share of trainings that never get there", .low = 0, .high = 1, .required = true});
}

void describe(Walk& walk, CostByUse& cost) {
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) walk.member(kGpuUseNames[use], cost.by_gpu_use[use]);
  walk.member("idle_tail", cost.idle_tail, {.says = "nodes that are held after the last step"});
  walk.member("minimum_and_rounding", cost.minimum_and_rounding, {.says = "time that is billed and was not used"});
}

void describe(Walk& walk, EnergyUse& energy) {
  walk.member("kwh", energy.kwh, {.says = "at the data centre's meter", .low = 0, .required = true});
  walk.member("kg_co2e", energy.kg_co2e, {.low = 0, .required = true});
  walk.member("kwh_interval", energy.kwh_interval, {.says = "at the bounds of the time"});
  walk.member("kg_co2e_interval", energy.kg_co2e_interval, {.says = "at the bounds of the time"});
  walk.member("gpu_kwh", energy.gpu_kwh, {.low = 0});
  walk.member("host_kwh", energy.host_kwh, {.says = "0 for hosts whose power is not stated", .low = 0});
  walk.member("grid", energy.grid, {.says = "sources of the carbon intensities"});
}

void describe(Walk& walk, RunEvent& event) {
  walk.member("at_s", event.at, {.says = "seconds from the request", .low = 0, .required = true});
  walk.member("event", event.what,
              {.says = "requested, waiting, provisioned, ready, stage, checkpoint, evaluated, notice, lost, crashed, "
                       "restored, resized, released, straggler, …, finished",
               .required = true});
  walk.member_unless("pool", event.pool, {});
  walk.member_unless("nodes", event.nodes, 0, {.low = 1});
  walk.member_unless("detail", event.detail, {}, {.says = "name of a stage, or factor of a slowdown"});
  walk.member_unless("times", event.times, std::int64_t{1},
                     {.says = "checkpoints in a stretch without other events", .low = 1});
}

void describe(Walk& walk, StepSpans::Row& row) { walk.row(row.worker, row.kind, row.name, row.start, row.length); }

void describe(Walk& walk, StepSpans& spans) {
  walk.constant("columns", {"worker", "kind", "name", "start_s", "seconds"}, kRequired);
  walk.constant("kinds", {"compute", "host", "communication", "exposed", "straggler", "input", "input_stall", "lost"},
                kRequired);
  walk.member("names", spans.names, kRequired);
  walk.member("rows", spans.rows,
              {.says = "with these columns: kind and name are positions in kinds and names, times are seconds from the "
                       "first of these steps",
               .required = true});
}

void describe(Walk& walk, PoolUse& use) {
  walk.member("pool", use.pool);
  walk.member("gpu", use.gpu);
  walk.member("node_hours", use.node_hours, kCount);
  walk.member("gpu_seconds", use.gpu_seconds);
  walk.member("usd", use.usd, {.says = "for its instance-hours"});
  walk.number_of("usd_number", use.usd);
  walk.member_unless("owned", use.owned, {}, {.says = "what the price of a machine of one's own assumes"});
}

void describe(Walk& walk, SeedQuantiles& spread) {
  walk.member("median", spread.median, {.required = true, .unknown_is_null = true});
  walk.member("p5", spread.p5, {.unknown_is_null = true});
  walk.member("p95", spread.p95, {.unknown_is_null = true});
  Interval interval = {spread.low, spread.high};
  walk.member("interval", interval, {.says = "with all stated error", .required = true, .unknown_is_null = true});
  if (!(interval == Interval{spread.low, spread.high})) spread.low = interval.low, spread.high = interval.high;
}

void describe(Walk& walk, SeedRuns& seeds) {
  walk.member("first", seeds.first, {.says = "the run's own seed", .required = true});
  walk.member("count", seeds.count, {.low = 2, .required = true});
  walk.member("finished", seeds.finished, {.says = "the others never would", .low = 1, .required = true});
  walk.member("met", seeds.met, {.says = "runs that keep deadline and budget", .low = 0, .required = true});
  walk.member("losses_mean", seeds.losses_mean, kCount);
  walk.member("time_s", seeds.time_s, kRequired);
  walk.member("usd", seeds.usd, kRequired);
}

namespace {

void describe_run(Walk& walk, Result& result) {
  walk.member("platform", result.platform, kRequired);
  walk.member("market", result.market);
  walk.member("allocation", result.allocation);
  walk.member("gpu", result.gpu);
  walk.member("gpus", result.gpus,
              {.says = "the most that trained at once; the instances may hold more", .low = 1, .required = true});
  walk.member("scheme", result.scheme, kRequired);
  walk.member("mode", result.mode);
  walk.member("placement", result.placement);
  walk.member("policy", result.policy);
}

void describe_time(Walk& walk, Result& result) {
  walk.member("total_s", result.total,
              {.says = "from the request to the end of the last step, or of the checkpoint after it",
               .low = 0,
               .required = true});
  walk.member("steps", result.steps, {.low = 0, .required = true});
  walk.member("images", result.images, kCount);
  walk.member("step_mean_s", result.step_mean, {.low = 0, .required = true});
  walk.member("interval_s", result.interval_s, {.says = "of total_s, with all stated error", .required = true});
  walk.member("sampling_interval_s", result.sampling_interval_s,
              {.says = "of total_s: the error of the steps' sampling, and the spread between equal runs"});
  walk.member("confidence", result.confidence,
              {.says = "of sampling_interval_s, and of interval_s if the inputs are measured", .low = 0, .high = 1});
  walk.member("fidelity", result.fidelity, {.choices = {"sampled", "message"}});
  walk.member("steps_simulated", result.steps_simulated, kCount);
}

void describe_utilization(Walk& walk, Result& result) {
  walk.member("gpu_busy", result.gpu_busy,
              {.says = "share of the GPU time held in which a phase of the step runs", .low = 0, .high = 1});
  walk.member("gpu_flops", result.gpu_flops, {.says = "useful FLOPs over the peak of the GPUs held", .low = 0});
  walk.member("cpu", result.cpu,
              {.says = "share of the vCPUs held that input and launching keep busy; null if the platform states none"});
  walk.member("network", result.network,
              {.says = "share of the time in which gradients keep the busiest link busy", .low = 0});
  walk.member("cpu_reserved", result.cpu_reserved,
              {.says = "share of the training nodes' vCPUs that the policy reserves; null if not stated"});
  walk.member("memory_reserved", result.memory_reserved,
              {.says = "share of the training nodes' memory that the policy reserves; null if not stated"});
  walk.member("memory_bytes", result.memory, {.says = "of one GPU", .low = 0});
}

void describe_cost(Walk& walk, Result& result) {
  walk.member("total_usd", result.usd, kRequired);
  walk.member("interval_usd", result.cost_usd, {.says = "over the bounds of time.interval_s"});
  walk.member("items", result.bill.items, kRequired);
  walk.member("instance_hours_by_use", result.cost_by_use,
              {.says = "what the instance-hours were spent on; the parts sum to these items exactly"});
  walk.object("instance_hours_by_use_number", [&] {
    const CostByUse& cost = result.cost_by_use;
    for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) walk.number_of(kGpuUseNames[use], cost.by_gpu_use[use]);
    walk.number_of("idle_tail", cost.idle_tail);
    walk.number_of("minimum_and_rounding", cost.minimum_and_rounding);
  });
}

void describe_goals(Walk& walk, Result& result) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  walk.member("deadline_s", result.deadline);
  walk.member("budget_usd", result.budget);
  walk.derived("budget_usd_number", result.budget ? usd_of(*result.budget) : kNone, {.unknown_is_null = true});
  walk.member("met", result.met);
}

void describe_provenance(Walk& walk, Result& result) {
  walk.member("tool", result.tool, kRequired);
  walk.member("scenario_hash", result.hash, {.says = "of the scenario with its files", .required = true});
  walk.member("seed", result.seed, kRequired);
  walk.member("inputs", result.inputs,
              {.says = "the least certain of the inputs",
               .required = true,
               .choices = {"measured", "measured (stated by the user)", "transferred", "kernel model", "datasheet"}});
  walk.member("risk", result.risk,
              {.says = "how sure it is when spot nodes are taken back, of the least sure pool",
               .choices = {"none", "measured", "stated", "preset", "assumed"}});
  walk.member("steps", result.step_source);
  walk.member("fabric", result.fabric_source);
  walk.member("software", result.software, {.says = "with which the steps were measured"});
  walk.member("prices_as_of", result.prices_as_of);
  walk.member("warnings", result.warnings);
  walk.member_unless("scenario", result.scenario, {}, {.says = "as it was read"});
  walk.member_if_any("files", result.file_hashes,
                     {.says = "hash of each file that the scenario names, by JSON pointer"});
}

}  // namespace

void describe(Walk& walk, Result& result) {
  walk.constant("schema", kResultSchema, kRequired);
  walk.object(
      "run", [&] { describe_run(walk, result); }, kRequired);
  walk.member("launch", result.launch, {.says = "what the run rents, for exports"});
  walk.member_if_any("quality", result.quality, {.says = "what is known of the images to the FID that is the goal"});
  walk.object(
      "time", [&] { describe_time(walk, result); }, kRequired);
  walk.object(
      "utilization", [&] { describe_utilization(walk, result); }, kRequired);
  walk.member("gpu_seconds", result.gpu_seconds, {.says = "GPU time by use; the uses sum to total", .required = true});
  walk.derived("gpu_hours", result.gpu_seconds.hours(), kCount);
  walk.object(
      "cost", [&] { describe_cost(walk, result); }, kRequired);
  walk.member("energy", result.energy, {.says = "null if the platform states no power or no carbon", .required = true});
  walk.member("events", result.events, kRequired);
  walk.member_if_any("step_spans", result.spans,
                     {.says = "what workers do in some steps, if --show-steps asks for it"});
  walk.member("pools", result.pools, {.says = "those that were used"});
  walk.object("life", [&] {
    walk.member("losses", result.losses, {.says = "nodes taken back or crashed", .low = 0});
    walk.member("checkpoints", result.checkpoints, kCount);
    walk.member("lost_training_s", result.lost_training, {.says = "training that had to be done again", .low = 0});
    walk.member("staleness", result.staleness,
                {.says = "updates by others between reading and updating; null unless asynchronous"});
  });
  walk.object("goals", [&] { describe_goals(walk, result); });
  walk.member_if_any("seeds", result.seeds, {.says = "what this seed and the next ones come to, where chance decides"});
  walk.object(
      "provenance", [&] { describe_provenance(walk, result); }, kRequired);
}

std::string result_text(const Result& result) { return written(described(result)).dump(2) + "\n"; }

OrderedJson result_row(Result result) {
  result.scenario.text.clear();
  result.file_hashes.reset();
  return written(described(result));
}

Result read_result(const JsonNode& node) {
  Result result;
  read(node, described(result), {.strict = false, .again = "simulate again with --format json"});
  const auto below = [](int index, std::size_t size) { return index >= 0 && static_cast<std::size_t>(index) < size; };
  if (result.spans)
    for (const StepSpans::Row& row : result.spans->rows)
      if (row.worker < 0 || !below(row.kind, StepSpans::kKinds.size()) || !below(row.name, result.spans->names.size()))
        node.child("step_spans").child("rows").fail("a row has a worker, kind or name that is none");
  return result;
}

Result result_in(const Json& value) { return read_result(JsonNode::wrap(value, "result", {})); }

}  // namespace ganymede::documents
