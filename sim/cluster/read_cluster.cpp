// Reads `ganymede.cluster/1`.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/job_trace.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

constexpr int kMostGpusOfJob = 65536;

/// A path that a scenario in another folder may name too.
void make_absolute(Json& object, const char* key, const std::filesystem::path& folder) {
  if (!object.contains(key) || !object[key].is_string()) return;
  const auto name = object[key].get<std::string>();
  if (platforms::is_provider(name) && std::string_view(key) == "catalog") return;
  object[key] = std::filesystem::absolute(folder / name).string();
}

void read_cluster_pools(const JsonNode& node, Cluster& cluster) {
  Scenario scenario;
  Fingerprint fingerprint(node);
  ScenarioInputCache cache;
  read_pools(node, scenario, fingerprint, cache);
  cluster.pools = std::move(scenario.pools);
  const Json& json = node.value();
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const ScenarioPool& pool = cluster.pools[i];
    if (pool.pool.market == platforms::Market::spot)
      node.fail(
          fmt::format("the pool {} is on the spot market: interruptions of clusters are not simulated", pool.name));
    if (pool.platform->fabric.kind == platforms::Fabric::Kind::torus)
      node.fail(
          fmt::format("{} is a torus, whose links are not shared among jobs; expected a switch", pool.platform->name));
    Json copy = json.contains("pools") ? json["pools"][i] : json;
    make_absolute(copy, "catalog", node.directory());
    make_absolute(copy, "overlay", node.directory());
    for (const char* key : {"nodes", "max_nodes", "gpus_per_node", "name", "links", "allowed_regions"}) copy.erase(key);
    cluster.pool_json.push_back(std::move(copy));
  }
}

void read_workload(const std::string& name, const JsonNode& node, Cluster& cluster) {
  JsonObject in(node);
  ClusterWorkload workload{name, nullptr, "", ""};
  if (auto model = in.optional("model")) {
    workload.model = model->as_string();
    if (auto batch = in.optional("batch_per_gpu"))
      workload.batch = std::to_string(batch->as_integer(1, std::int64_t{1} << 31));
    if (!cluster.throughputs) cluster.throughputs = std::make_shared<const Throughputs>();
    if (!cluster.throughputs->has({workload.model, workload.batch}))
      model->fail(
          fmt::format("no throughputs of \"{}\" with batch \"{}\" were measured, expected {}, or a batch between",
                      workload.model, workload.batch, list_of(cluster.throughputs->models())));
    warn_of_estimate({workload.model, workload.batch}, cluster);
  } else if (auto file = in.optional("scenario")) {
    workload.scenario = std::make_shared<const JsonNode>(JsonNode::load(file->directory() / file->as_string()));
  } else {
    Json scenario = {{"schema", "ganymede.scenario/1"}, {"seed", 1U}};
    for (const char* key : {"workload", "synchronization"}) scenario[key] = in.required(key).value();
    for (const char* key : {"storage", "checkpoint", "fidelity"})
      if (auto part = in.optional(key)) scenario[key] = part->value();
    workload.scenario = std::make_shared<const JsonNode>(
        JsonNode::wrap(std::move(scenario), node.file() + ": " + node.pointer(), node.directory()));
  }
  if (auto noise = in.optional("noise_images")) workload.noise_images = noise->as_number(1, 1e12);
  in.finish();
  cluster.workloads.push_back(std::move(workload));
}

std::size_t find_workload(const JsonNode& node, const Cluster& cluster) {
  std::vector<std::string> names;
  for (const ClusterWorkload& workload : cluster.workloads) names.push_back(workload.name);
  if (names.empty()) node.fail("the cluster has no \"workloads\"");
  const std::string name = node.as_choice(names);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// "gpus": 8, or { "min": 4, "ask": 8, "max": 16 }.
void read_gpus(const JsonNode& node, ClusterJob& job) {
  const auto count = [](const JsonNode& of) { return static_cast<int>(of.as_integer(1, kMostGpusOfJob)); };
  if (!node.is_object()) {
    job.gpus = job.least = job.most = count(node);
    return;
  }
  JsonObject in(node);
  job.least = count(in.required("min"));
  job.most = count(in.required("max"));
  const auto asked = in.optional("ask");
  job.gpus = asked ? count(*asked) : job.least;
  in.finish();
  if (job.least > job.gpus || job.gpus > job.most) node.expected("min <= ask <= max");
}

ClusterJob read_job(const JsonNode& node, std::size_t index, Cluster& cluster, std::vector<std::string>& after) {
  JsonObject in(node);
  ClusterJob job;
  auto name = in.optional("name");
  job.name = name ? name->as_string() : fmt::format("job-{}", index);
  if (auto arrival = in.optional("arrival")) job.arrival_s = arrival->as_quantity<Seconds>().si;
  read_gpus(in.required("gpus"), job);
  if (auto priority = in.optional("priority")) job.priority = priority->as_integer(-kHighestPriority, kHighestPriority);
  if (auto deadline = in.optional("deadline")) job.deadline_s = deadline->as_positive<Seconds>().si;
  auto owner = in.optional("owner");
  job.owner = owner_of(owner ? owner->as_string() : "all", cluster);
  const JsonNode what = in.one_of("workload", "duration");
  if (what.pointer().ends_with("/duration")) {
    job.duration_s = what.as_positive<Seconds>().si;
    job.workload = timed_workload_of(cluster);
  } else {
    job.workload = find_workload(what, cluster);
  }
  auto steps = in.optional("steps");
  if (steps && job.duration_s > 0) steps->fail("the job runs for its \"duration\", not for a number of steps");
  if (steps) job.steps = static_cast<double>(steps->as_integer(1, 1'000'000'000'000'000));
  if (!cluster.workloads[job.workload].model.empty() && job.steps == 0)
    node.fail("the key \"steps\" is missing: the steps of all workers together");
  if (auto waits = in.optional("after"))
    for (const JsonNode& other : waits->as_array()) after.push_back(other.as_string());
  in.finish();
  return job;
}

void read_jobs(const JsonNode& node, Cluster& cluster) {
  if (node.is_object()) {
    JsonObject in(node);
    const JsonNode trace = in.required("trace");
    auto part = in.optional("virtual_cluster");
    in.finish();
    read_job_trace(trace, part ? part->as_string() : "", cluster);
    return;
  }
  std::vector<std::vector<std::string>> after;
  std::map<std::string, std::size_t> names;
  for (const JsonNode& entry : node.as_array()) {
    after.emplace_back();
    ClusterJob job = read_job(entry, after.size(), cluster, after.back());
    if (const auto [first, is_new] = names.emplace(job.name, after.size() - 1); !is_new)
      entry.fail(fmt::format("the job is called \"{}\", as {}/{} is", job.name, node.pointer(), first->second));
    if (!cluster.jobs.empty() && job.arrival_s < cluster.jobs.back().arrival_s)
      entry.fail(
          fmt::format("{} arrives at {} after {}, which arrives at {}: jobs must stand in the order of their arrival",
                      job.name, to_string(Seconds{job.arrival_s}), cluster.jobs.back().name,
                      to_string(Seconds{cluster.jobs.back().arrival_s})));
    cluster.jobs.push_back(std::move(job));
  }
  if (cluster.jobs.empty()) node.expected("at least one job");
  resolve_after(node, after, cluster);
}

void read_owners(const JsonNode& node, Cluster& cluster) {
  for (const auto& [name, entry] : node.as_map()) {
    JsonObject in(entry);
    policies::OwnerState owner{name};
    if (auto quota = in.optional("quota")) owner.quota_gpus = static_cast<double>(quota->as_integer(0, 1 << 30));
    in.finish();
    cluster.owners.push_back(std::move(owner));
  }
}

void read_scheduler(const JsonNode& node, ClusterScheduler& scheduler) {
  JsonObject in(node);
  scheduler.row = policies::find_scheduler(in.required("name").as_choice(policies::scheduler_names()));
  for (const policies::PolicySetting& setting : scheduler.row->settings) {
    auto value = in.optional(setting.name);
    scheduler.settings.push_back(value ? value->as_number(setting.low, setting.high) : setting.default_value);
  }
  if (!scheduler.row->decide) {
    const JsonNode command = in.required("command");
    scheduler.command = shell_command(command.as_string(), command.directory());
    if (auto limit = in.optional("limit")) scheduler.limit = limit->as_positive<Seconds>();
  }
  in.finish();
}

void read_preemption(const JsonNode& node, PreemptionCost& cost) {
  JsonObject in(node);
  if (auto save = in.optional("save")) cost.save = save->as_quantity<Seconds>();
  if (auto restore = in.optional("restore")) cost.restore = restore->as_quantity<Seconds>();
  in.finish();
}

void read_cluster_charges(const JsonNode& node, Cluster& cluster) {
  Scenario whole;
  whole.pools = cluster.pools;
  read_charges(node, whole);
  cluster.charges = whole.charges;
}

/// Throws Infeasible for a job that no pool can hold.
void check_sizes(const Cluster& cluster) {
  int most = 0;
  for (const ScenarioPool& pool : cluster.pools) most = std::max(most, pool.pool.nodes * pool.pool.gpus_per_node);
  for (const ClusterJob& job : cluster.jobs)
    if (job.gpus > most)
      throw Infeasible(fmt::format("{}: the job {} asks for {} GPUs; the largest pool has {}", cluster.file, job.name,
                                   job.gpus, most));
}

void read_fidelity(const JsonNode& node, Cluster& cluster) {
  JsonObject in(node);
  const JsonNode mode = in.required("mode");
  if (mode.as_choice({"sampled", "message"}) == "message") cluster.fidelity = Fidelity::message;
  const auto messages = in.optional("messages");
  in.finish();
  if (cluster.fidelity == Fidelity::sampled) {
    if (messages) cluster.beat_messages = messages->as_number(0, 1e9);
    return;
  }
  if (messages) messages->fail("found it at message fidelity, which simulates all, expected the mode \"sampled\"");
  if (cluster.packing > 0)
    mode.fail("found \"message\" and packing: how fast two jobs of a GPU are was measured and is not simulated");
  if (!cluster.contention) mode.fail("found \"message\" without contention, expected \"sampled\"");
}

}  // namespace

int Cluster::gpus() const {
  int sum = 0;
  for (const ScenarioPool& pool : pools) sum += pool.pool.nodes * pool.pool.gpus_per_node;
  return sum;
}

bool is_cluster(const Json& document) {
  if (!document.is_object() || !document.contains("schema") || !document["schema"].is_string()) return false;
  return document["schema"].get<std::string>().starts_with("ganymede.cluster/");
}

Cluster read_cluster(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, "ganymede.cluster/1");
  Cluster cluster;
  cluster.file = node.file();
  read_cluster_pools(in.required("platform"), cluster);
  if (auto owners = in.optional("owners")) read_owners(*owners, cluster);
  if (auto workloads = in.optional("workloads"))
    for (const auto& [name, workload] : workloads->as_map()) read_workload(name, workload, cluster);
  if (auto throughputs = in.optional("packing")) cluster.packing = throughputs->as_number(1, 2);
  read_jobs(in.required("jobs"), cluster);
  cluster.scheduler.row = &policies::schedulers().front();
  if (auto scheduler = in.optional("scheduler"))
    read_scheduler(*scheduler, cluster.scheduler);
  else
    for (const policies::PolicySetting& setting : cluster.scheduler.row->settings)
      cluster.scheduler.settings.push_back(setting.default_value);
  auto placement = in.optional("placement");
  cluster.placement = placement ? policies::find_placement(placement->as_choice(policies::placement_names()))
                                : &policies::placements().front();
  if (auto preemption = in.optional("preemption")) read_preemption(*preemption, cluster.preemption);
  if (auto billing = in.optional("billing")) read_cluster_charges(*billing, cluster);
  if (auto contention = in.optional("contention")) cluster.contention = contention->as_bool();
  if (auto precision = in.optional("precision")) cluster.precision = precision->as_number(1e-4, 1);
  if (auto fidelity = in.optional("fidelity")) read_fidelity(*fidelity, cluster);
  cluster.seed = in.required("seed").as_seed();
  in.finish();
  check_sizes(cluster);
  cluster.content = node.value().dump();
  std::string all = cluster.content;
  for (const ClusterJob& job : cluster.jobs)
    all += fmt::format("\n{} {} {} {} {} {} {} {} {} {} {} {}", job.name, job.arrival_s, job.gpus, job.steps,
                       job.duration_s, job.least, job.most, job.priority, job.deadline_s.value_or(0),
                       cluster.owners[job.owner].name, cluster.workloads[job.workload].name, fmt::join(job.after, ","));
  cluster.hash = fmt::format("{:016x}", fnv1a(all));
  return cluster;
}

}  // namespace ganymede::sim
