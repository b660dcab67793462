#include "sim/run/scenario.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "calibration/batch_fit.hpp"
#include "common/file.hpp"
#include "sim/run/scenario_parts.hpp"
#include "traces/quality_curve.hpp"
#include "traces/recorded.hpp"

namespace ganymede {
namespace {

constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
constexpr std::int64_t kMaxBatch = 1 << 24;
/// How much a stage's length varies where the scenario does not say: an assumption. Published schedules are fixed, but
/// a stage is prolonged or cut short by how training goes.
constexpr double kStageVariation = 0.25;

Dataset read_dataset(const JsonNode& node) {
  JsonObject in(node);
  Dataset dataset;
  dataset.name = in.required("name").as_string();
  dataset.images = in.required("images").as_integer(1, kMaxSteps);
  if (auto bytes = in.optional("bytes_per_image")) dataset.bytes_per_image = bytes->as_number(0, 1e12);
  in.finish();
  return dataset;
}

/// Images until a recorded training was that good.
std::int64_t images_to_quality(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  QualityTarget target;
  const JsonNode wanted = in.one_of("fid", "inception_score");
  (node.value().contains("fid") ? target.fid : target.inception_score) = wanted.as_number(1e-9, 1e9);
  const JsonNode file = in.required("curve");
  in.finish();
  const std::filesystem::path path = file.directory() / file.as_string();
  std::string text;
  try {
    text = read_file(path);
  } catch (const ConfigError& error) {
    file.fail(fmt::format("{}; `ganymede train --quality 256 --quality-every 100 --quality-curve FILE` records one",
                          error.what()));
  }
  fingerprint.replace("/workload/quality/curve", text);
  const QualityCurves curves = read_quality_curves(JsonNode::parse(text, path.string()));
  if (curves.model != scenario.trace.model)
    file.fail(fmt::format("the quality curve is of {}, the trace of {}", curves.model, scenario.trace.model));
  const auto batch = static_cast<double>(scenario.images_a_step(scenario.workers()));
  try {
    const ImagesNeeded needed = images_for(curves, target, batch);
    scenario.warnings.push_back(fmt::format(
        "{} {:g} takes {:.4g} images at a batch of {:g} in all ({:.4g} to {:.4g} in the recorded trainings), in the "
        "features of {} on {}; no other features' figures compare with it",
        target.fid ? "FID" : "inception score", wanted.as_number(0, 1e9), needed.images, batch, needed.low, needed.high,
        curves.features, curves.dataset));
    scenario.warnings.insert(scenario.warnings.end(), needed.notes.begin(), needed.notes.end());
    return std::llround(std::ceil(needed.images * (1 - 1e-9)));  // an exact number is not rounded up
  } catch (const ConfigError& error) {
    wanted.fail(error.what());
  }
}

void read_target(JsonObject& in, Scenario& scenario, Fingerprint& fingerprint) {
  const std::int64_t global_batch = scenario.images_a_step(scenario.workers());
  assert(global_batch > 0);
  const auto steps_for = [&](std::int64_t images) { return (images + global_batch - 1) / global_batch; };
  auto steps = in.optional("steps");
  auto epochs = in.optional("epochs");
  auto images = in.optional("images");
  auto quality = in.optional("quality");
  if (int{steps.has_value()} + int{epochs.has_value()} + int{images.has_value()} + int{quality.has_value()} != 1)
    in.node().fail("expected exactly one of \"steps\", \"epochs\", \"images\" and \"quality\"");
  if (quality) {
    scenario.target = Target::images;
    scenario.images = images_to_quality(*quality, scenario, fingerprint);
    scenario.steps = steps_for(scenario.images);
  } else if (steps) {
    scenario.target = Target::steps;
    scenario.steps = steps->as_integer(1, kMaxSteps);
    scenario.images = scenario.steps * global_batch;
  } else if (images) {
    scenario.target = Target::images;
    scenario.images = images->as_integer(1, kMaxSteps);
    scenario.steps = steps_for(scenario.images);
  } else {
    scenario.target = Target::epochs;
    if (scenario.dataset.images == 0)
      epochs->fail("epochs need \"dataset\" beside them, to know how many images one has");
    const std::int64_t count = epochs->as_integer(1, kMaxSteps / scenario.dataset.images);
    scenario.steps = count * steps_for(scenario.dataset.images);
    scenario.images = count * scenario.dataset.images;
  }
}

/// The stages of a growing model and their shares of the target.
void read_stages(JsonObject& in, Scenario& scenario) {
  const std::size_t count = scenario.stages.size();
  scenario.stage_shares.assign(count, 1 / static_cast<double>(count));
  scenario.stage_variation = count > 1 ? kStageVariation : 0;
  auto node = in.optional("stages");
  if (!node) return;
  if (count == 1) node->fail("the trace is not of a growing model: it has one stage");
  JsonObject stages(*node);
  if (auto shares = stages.optional("shares")) {
    scenario.stage_shares = shares->as_numbers(0, 1);
    double sum = 0;
    for (const double share : scenario.stage_shares) sum += share;
    if (scenario.stage_shares.size() != count || std::abs(sum - 1) > 1e-6)
      shares->expected(fmt::format("{} shares that sum to 1, one a stage of the trace", count));
  }
  if (auto variation = stages.optional("variation")) scenario.stage_variation = variation->as_number(0, 0.9);
  stages.finish();
}

/// Searches read the same trace for thousands of scenarios.
const StepTrace& known_trace(const std::string& text, const std::string& file, std::uint64_t hash) {
  static std::map<std::pair<std::string, std::uint64_t>, StepTrace> known;
  const auto [place, fresh] = known.try_emplace({file, hash});
  if (fresh) {
    try {
      place->second = read_step_trace(JsonNode::parse(text, file));
    } catch (...) {
      known.erase(place);
      throw;
    }
  }
  return place->second;
}

void read_workload(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  const JsonNode trace = in.required("trace");
  const std::string file = trace_name(trace);
  const std::string text = trace_text(trace);
  const std::uint64_t hash = file.starts_with(kRecorded) ? embedded_hash(file, text) : fnv1a(text);
  scenario.trace = known_trace(text, file, hash);
  fingerprint.replace("/workload/trace", hash);

  const JsonNode batch = in.required("batch_per_gpu");
  const auto wanted = static_cast<int>(batch.as_integer(1, kMaxBatch));
  std::vector<std::string> stages;  // of a growing model, in the order of the trace
  for (std::size_t i = 0; i < scenario.trace.batches.size(); ++i) {
    const TraceBatch& known = scenario.trace.batches[i];
    if (known.batch == wanted) scenario.stages.push_back(i);
    if (std::find(stages.begin(), stages.end(), known.stage) == stages.end()) stages.push_back(known.stage);
  }
  try {
    if (scenario.stages.empty())
      for (const std::string& stage : stages) scenario.stages.push_back(entry_for(scenario.trace, stage, wanted));
  } catch (const ConfigError& error) {
    batch.fail(fmt::format("found {}, {}", wanted, error.what()));
  }
  if (auto dataset = in.optional("dataset")) scenario.dataset = read_dataset(*dataset);
  read_stages(in, scenario);
  read_target(in, scenario, fingerprint);
  in.finish();
}

void read_synchronization(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  Synchronization& sync = scenario.synchronization;
  if (auto mode = in.optional("mode")) {
    const std::string name = mode->as_choice({"all-reduce", "async-parameter-server", "local-sgd", "gossip"});
    sync.mode = name == "all-reduce"               ? Mode::all_reduce
                : name == "async-parameter-server" ? Mode::async_parameter_server
                : name == "local-sgd"              ? Mode::local_sgd
                                                   : Mode::gossip;
  }
  sync.scheme = read_scheme(in.required("scheme"));
  if (auto overlap = in.optional("overlap")) sync.overlap = overlap->as_bool();
  if (auto compression = in.optional("compression")) compression->as_choice({"none"});
  if (auto placement = in.optional("placement"))
    if (placement->as_choice({"data-parallel", "component-split"}) == "component-split") {
      sync.placement = Placement::component_split;
      if (scenario.workers() % 2 != 0)
        placement->fail(
            fmt::format("generator and discriminator take turns on pairs of GPUs, found {} GPUs", scenario.workers()));
      if (sync.mode != Mode::all_reduce) placement->fail("component-split needs the mode \"all-reduce\"");
    }
  if (sync.mode == Mode::async_parameter_server) scenario.servers = read_servers(in.required("scheme"), scenario);
  if (auto jitter = in.optional("jitter")) sync.jitter = jitter->as_number(0, 1);
  if (auto backup = in.optional("backup_workers")) {
    if (sync.mode != Mode::all_reduce) backup->fail("backup workers need the mode \"all-reduce\"");
    if (sync.placement != Placement::data_parallel) backup->fail("backup workers need the placement \"data-parallel\"");
    sync.backup_workers = static_cast<int>(backup->as_integer(0, std::max(0, scenario.workers() - 1)));
  }
  if (auto steps = in.optional("local_steps")) {
    if (sync.mode != Mode::local_sgd) steps->fail("local steps need the mode \"local-sgd\"");
    sync.local_steps = static_cast<int>(steps->as_integer(1, 1'000'000));
  } else if (sync.mode == Mode::local_sgd) {
    sync.local_steps = 16;
  }
  if (auto batches = in.optional("batches")) sync.by_speed = batches->as_choice({"equal", "by-speed"}) == "by-speed";
  if (auto secure = in.optional("secure_aggregation")) {
    if (sync.mode != Mode::local_sgd) secure->fail("secure aggregation needs the mode \"local-sgd\"");
    JsonObject costs(*secure);
    if (auto bytes = costs.optional("bytes_factor")) sync.secure_bytes = bytes->as_number(1, 1000);
    if (auto cpu = costs.optional("cpu_per_gb")) sync.secure_cpu_per_gb = cpu->as_quantity<Seconds>();
    costs.finish();
  }
  in.finish();
}

void read_fidelity(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  if (auto mode = in.optional("mode"))
    scenario.fidelity = mode->as_choice({"sampled", "message"}) == "message" ? Fidelity::message : Fidelity::sampled;
  if (auto precision = in.optional("precision")) scenario.precision = precision->as_number(1e-4, 1);
  in.finish();
}

void read_provisioning(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  if (auto boot = in.optional("boot")) {
    scenario.provisioning.boot = read_delay(*boot);
    scenario.boot_given = true;
  }
  read_delays(in, scenario.provisioning);
  in.finish();
}

void read_goals(JsonObject& in, Scenario& scenario) {
  if (auto deadline = in.optional("deadline")) {
    scenario.deadline = deadline->as_quantity<Seconds>();
    if (scenario.deadline->si <= 0) deadline->fail("a deadline of 0 is already past; it counts from the request");
  }
  if (auto budget = in.optional("budget")) {
    scenario.budget = read_money(*budget);
    for (const auto& pool : scenario.pools) {
      const Billing& billing = pool.platform->billing;
      const Seconds least = std::max(billing.granularity, billing.minimum);
      const MicroUsd price{std::llround(static_cast<double>(pool.price.per_hour.value) * least.si / 3600)};
      if (*scenario.budget >= price && scenario.budget->value > 0) return;
    }
    budget->fail(
        fmt::format("{} do not pay for the shortest time for which one node is charged", to_string(*scenario.budget)));
  }
}

void read_power_cap(const JsonNode& node, Scenario& scenario) {
  scenario.power_cap = node.as_positive<Watts>();
  for (const ScenarioPool& pool : scenario.pools) {
    const Gpu& gpu = pool.gpu();
    if (!gpu.idle || !gpu.peak)
      node.fail(fmt::format("the catalog {} states no power of {}", pool.platform->name, gpu.name));
    if (*scenario.power_cap <= *gpu.idle)
      node.expected(fmt::format("more than {} draws when it is idle, {}", gpu.name, to_string(*gpu.idle)));
    if (*scenario.power_cap >= *gpu.peak)
      scenario.warnings.push_back(fmt::format("the power cap of {} changes nothing: {} draws {} at most",
                                              to_string(*scenario.power_cap), gpu.name, to_string(*gpu.peak)));
  }
}

/// A policy without the goal that it steers by rents what is asked for.
void check_goals(Scenario& scenario) {
  const Policy& policy = *scenario.policy.policy;
  const auto warn = [&](const char* goal) {
    scenario.warnings.push_back(
        fmt::format("the policy {} steers by a \"{}\", which the scenario does not state", policy.name, goal));
  };
  if (policy.needs_deadline && !scenario.deadline) warn("deadline");
  if (policy.needs_budget && !scenario.budget) warn("budget");
}

void check_memory(const Scenario& scenario) {
  for (const auto& pool : scenario.pools) {
    Bytes needed{0};
    for (const std::size_t stage : scenario.stages)
      needed = std::max(needed, gpu_memory(scenario.trace.batches[stage]));
    const Gpu& gpu = pool.gpu();
    if (needed <= gpu.memory) continue;
    std::string fits;
    for (const auto& other : pool.platform->gpus)
      if (needed <= other.memory)
        fits += fmt::format("{}{} ({})", fits.empty() ? "" : ", ", other.name, to_string(other.memory));
    throw Infeasible(
        fmt::format("{}: batch {} of {} needs {} of GPU memory, {} has {}; {}", scenario.file, scenario.batch().batch,
                    scenario.trace.model, to_string(needed), gpu.name, to_string(gpu.memory),
                    fits.empty() ? "nothing in this platform holds it: take a smaller batch" : "it would fit " + fits));
  }
}

}  // namespace

int batches_loaded(const Synchronization& synchronization, int workers) {
  return synchronization.placement == Placement::component_split && workers > 1 ? workers / 2 : workers;
}

int batches_a_step(const Synchronization& synchronization, int workers) {
  const int loaded = batches_loaded(synchronization, workers);
  return std::max(std::min(loaded, 1), loaded - synchronization.backup_workers);
}

int Scenario::workers() const {
  int sum = 0;
  for (const auto& pool : pools) sum += pool.pool.nodes * pool.pool.gpus_per_node;
  return sum;
}

Bytes gpu_memory(const TraceBatch& batch) {
  double sum = 0;
  for (const auto& [kind, bytes] : batch.memory_bytes)
    if (!kind.starts_with("host")) sum += bytes;
  return Bytes{sum};
}

Scenario read_scenario(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, "ganymede.scenario/1");
  Fingerprint fingerprint(node);
  Scenario scenario;
  scenario.file = node.file();
  const JsonNode workload = in.required("workload");
  const JsonNode platform = in.required("platform");
  // How many steps a target takes depends on the number of workers and on whose batches count.
  read_pools(platform, scenario, fingerprint);
  read_synchronization(in.required("synchronization"), scenario);
  read_workload(workload, scenario, fingerprint);
  scenario.provisioning = scenario.pools.front().platform->provisioning;
  if (auto provisioning = in.optional("provisioning")) read_provisioning(*provisioning, scenario);
  read_checkpoints_and_storage(in, scenario);
  scenario.policy.policy = &default_policy();
  if (auto policy = in.optional("policy")) read_policy(*policy, scenario, fingerprint);
  add_offers(scenario);
  if (auto faults = in.optional("faults")) read_faults(*faults, scenario, fingerprint);
  if (auto billing = in.optional("billing")) read_charges(*billing, scenario);
  if (auto cap = in.optional("power_cap")) read_power_cap(*cap, scenario);
  if (auto fidelity = in.optional("fidelity")) read_fidelity(*fidelity, scenario);
  read_goals(in, scenario);
  check_goals(scenario);
  scenario.seed = in.required("seed").as_seed();
  in.finish();
  scenario.seedless = fingerprint.hash_without({"seed"});
  set_seed(scenario, scenario.seed);
  scenario.physics =
      fingerprint.hash_without({"seed", "policy", "faults", "deadline", "budget", "checkpoint", "billing",
                                "/platform/region", "/platform/market", "/platform/zone", "/platform/spot"});
  check_memory(scenario);
  if (scenario.synchronization.placement == Placement::component_split && scenario.dataset.bytes_per_image <= 0)
    scenario.warnings.push_back(
        "/workload/dataset states no \"bytes_per_image\": images cross between the GPUs of a pair as one value each, "
        "which takes no time");
  return scenario;
}

void set_seed(Scenario& scenario, std::uint64_t seed) {
  scenario.seed = seed;
  scenario.hash = fmt::format("{:016x}", fnv1a(fmt::format("{} {}", scenario.seedless, seed)));
}

Scenario with_seed(Scenario scenario, std::uint64_t seed) {
  set_seed(scenario, seed);
  return scenario;
}

Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  // A plan holds the scenario that it has chosen.
  const std::string inside = "/chosen/scenario";
  const JsonNode plain = JsonNode::load(file);
  if (!plain.is_object() || plain.value().value("schema", nlohmann::json()) != "ganymede.plan/1")
    return read_scenario(JsonNode::load(file, overrides));
  if (!plain.value().contains(nlohmann::json::json_pointer(inside)))
    plain.fail("the plan has chosen nothing: no candidate meets its goals");
  std::vector<JsonOverride> moved;
  for (const JsonOverride& given : overrides) moved.push_back({inside + given.pointer, given.value});
  return read_scenario(JsonNode::load(file, moved).child("chosen").child("scenario"));
}

}  // namespace ganymede
