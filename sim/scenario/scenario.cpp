#include "sim/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "calibration/device_memory.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/money.hpp"
#include "sim/scenario/parts.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

constexpr const char* kScenarioSchema = "ganymede.scenario/1";

/// The section of a scenario by its key; nothing if the scenario does not have it.
using SectionOf = std::function<std::optional<JsonNode>(const char* key)>;

/// Images from one evaluation to the next; 0 if there are none, or if they are a time apart. At most one follows each
/// step.
std::int64_t images_between_evaluations(const Scenario& scenario) {
  if (!scenario.evaluation) return 0;
  const Evaluation& evaluation = *scenario.evaluation;
  const auto batch = static_cast<double>(scenario.images_a_step(scenario.workers()));
  double images = 0;
  switch (evaluation.every) {
    case Evaluation::Every::steps:
      images = evaluation.count * batch;
      break;
    case Evaluation::Every::images:
      images = evaluation.count;
      break;
    case Evaluation::Every::epochs:
      images = evaluation.count * std::ceil(static_cast<double>(scenario.dataset.images) / batch) * batch;
      break;
    case Evaluation::Every::interval:
      return 0;
  }
  constexpr double kMostImages = 1e12;  // as for a target
  if (images > kMostImages)
    throw ConfigError(
        fmt::format("{}: /evaluation/every: {:.3g} images from one evaluation to the next, expected {:g} "
                    "at most",
                    scenario.file, images, kMostImages));
  return std::llround(std::max(images, batch));
}

/// Lets the training go on to the evaluation that says that the FID is reached.
void train_on_to_evaluation(Scenario& scenario) {
  const std::int64_t before = scenario.images;
  train_to_fid(scenario, before);
  scenario.warnings.push_back(
      scenario.evaluation->every == Evaluation::Every::interval
          ? "the training ends when it gets to its FID, not at the next evaluation, because these are a time apart"
          : fmt::format("an evaluation must say that the FID is reached after {:.3g} images: the training goes on to "
                        "the next one, for {:.3g} images more",
                        static_cast<double>(before), static_cast<double>(scenario.images - before)));
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
    scenario.provisioning.boot = platforms::read_delay(*boot);
    scenario.boot_given = true;
  }
  platforms::read_delays(in, scenario.provisioning);
  in.finish();
}

void read_goals(const SectionOf& section, Scenario& scenario) {
  if (auto deadline = section("deadline")) {
    scenario.deadline = with_unit(*deadline, {"h", "min"}).as_quantity<Seconds>();
    if (scenario.deadline->si <= 0) deadline->fail("a deadline of 0 is already past; it counts from the request");
  }
  if (auto budget = section("budget")) {
    scenario.budget = platforms::read_amount(*budget, "", "500USD");
    if (scenario.budget->value == 0) budget->fail("expected a budget above 0");
  }
}

void read_power_cap(const JsonNode& node, Scenario& scenario) {
  scenario.power_cap = node.as_positive<Watts>();
  for (const ScenarioPool& pool : scenario.pools) {
    const platforms::Gpu& gpu = pool.gpu();
    if (!gpu.idle || !gpu.peak)
      node.fail(fmt::format("the catalog {} states no power of {}", pool.platform->name, gpu.name));
    if (*scenario.power_cap <= *gpu.idle)
      node.expected(fmt::format("more than {} draws when it is idle, {}", gpu.name, to_string(*gpu.idle)));
    if (*scenario.power_cap >= *gpu.peak)
      scenario.warnings.push_back(fmt::format("the power cap of {} changes nothing: {} draws {} at most",
                                              to_string(*scenario.power_cap), gpu.name, to_string(*gpu.peak)));
  }
}

/// Warns if a policy lacks the goal that it steers by: it then rents what the scenario asks for.
void check_goals(Scenario& scenario) {
  const policies::Policy& policy = *scenario.policy.policy;
  const auto warn = [&](const char* goal) {
    scenario.warnings.push_back(
        fmt::format("the policy {} steers by a \"{}\", which the scenario does not state", policy.name, goal));
  };
  if (policy.needs_deadline && !scenario.deadline) warn("deadline");
  if (policy.needs_budget && !scenario.budget) warn("budget");
}

void check_memory(Scenario& scenario) {
  const bool several = scenario.workers() > 1;
  for (const auto& pool : scenario.pools) {
    const platforms::Gpu& gpu = pool.gpu();
    const auto on = [&](const platforms::Gpu& one) {
      calibration::DeviceMemory most;
      for (const std::size_t stage : scenario.stages) {
        calibration::DeviceMemory memory =
            calibration::device_memory(*scenario.trace, scenario.trace->batches[stage], one, several);
        if (memory.expected >= most.expected) most = std::move(memory);
      }
      return most;
    };
    const calibration::DeviceMemory needed = on(gpu);
    if (needed.high <= gpu.memory.si) continue;
    const std::string what =
        fmt::format("batch {} of {} needs {} of GPU memory, {} has {}", scenario.batch().batch, scenario.trace->model,
                    calibration::to_text(needed), gpu.name, to_string(gpu.memory));
    if (needed.expected <= gpu.memory.si) {
      scenario.warnings.push_back(fmt::format("{}: perhaps it does not fit", what));
      continue;
    }
    std::string fits, largest;
    for (const auto& other : pool.platform->gpus) {
      if (other.kind != gpu.kind) continue;  // programs for GPUs do not run on CPUs and TPUs
      if (on(other).expected <= other.memory.si)
        fits += fmt::format("{}{} ({})", fits.empty() ? "" : ", ", other.name, to_string(other.memory));
      else if (const int batch = calibration::largest_batch(*scenario.trace, other, several, /*surely=*/false);
               batch > 0)
        largest += fmt::format("{}{} on {}", largest.empty() ? "" : ", ", batch, other.name);
    }
    const std::string most = largest.empty() ? "" : "the largest batch that fits is " + largest;
    throw Infeasible(fmt::format("{}: {}; {}", scenario.file, what,
                                 !fits.empty()   ? "it would fit " + fits + (most.empty() ? "" : "; " + most)
                                 : !most.empty() ? "nothing in this platform holds it: " + most
                                                 : "nothing in this platform holds it, not even with a batch of one"));
  }
}

/// Reads all sections but "platform", "synchronization" and "workload", which must have been read.
void read_optional_sections(const SectionOf& section, Scenario& scenario, Fingerprint& fingerprint) {
  scenario.provisioning = scenario.pools.front().platform->provisioning;
  if (auto provisioning = section("provisioning")) read_provisioning(*provisioning, scenario);
  read_checkpoints_and_storage(section("checkpoint"), section("storage"), scenario);
  scenario.policy.policy = &policies::default_policy();
  if (auto policy = section("policy")) read_policy(*policy, scenario, fingerprint);
  add_policy_pools(scenario);
  if (auto evaluation = section("evaluation"))
    scenario.evaluation = read_evaluation(*evaluation, scenario.dataset.images > 0);
  if (scenario.quality && scenario.evaluation) train_on_to_evaluation(scenario);
  if (auto faults = section("faults")) read_faults(*faults, scenario);
  if (auto billing = section("billing")) read_charges(*billing, scenario);
  if (auto cap = section("power_cap")) read_power_cap(*cap, scenario);
  if (auto fidelity = section("fidelity")) read_fidelity(*fidelity, scenario);
  read_goals(section, scenario);
  check_goals(scenario);
}

/// Sets the hashes of a scenario whose sections have been read, and checks what hangs on several of them.
void complete(Scenario& scenario, Fingerprint fingerprint) {
  scenario.file_hashes = fingerprint.files();
  scenario.hash_without_seed = fingerprint.hash_without({"seed"});
  set_seed(scenario, scenario.seed);
  scenario.workload_fingerprint = fingerprint.hash_of("workload");
  const std::span stated(scenario.pools.data(), fingerprint.pools());
  if (!stated.empty() && std::ranges::all_of(stated, [&](const ScenarioPool& pool) {
        return same_place(stated.front(), pool) && same_nodes(stated.front(), pool);
      }))
    fingerprint.join_pools();
  scenario.step_fingerprint = fingerprint.hash_without({"seed", "policy", "faults", "deadline", "budget", "checkpoint",
                                                        "evaluation", "billing", "/platform/region", "/platform/market",
                                                        "/platform/zone", "/platform/spot", "/platform/name"});
  check_memory(scenario);
  if (scenario.synchronization.placement == Placement::component_split && scenario.dataset.bytes_per_image <= 0)
    scenario.warnings.push_back(
        "/workload/dataset states no \"bytes_per_image\": images cross between the GPUs of a pair as one value each, "
        "which takes no time");
}

}  // namespace

void train_to_fid(Scenario& scenario, std::int64_t images) {
  const std::int64_t every = images_between_evaluations(scenario), batch = scenario.images_a_step(scenario.workers());
  scenario.images = every == 0 ? images : (images + every - 1) / every * every;
  scenario.steps = (scenario.images + batch - 1) / batch;
}

int Scenario::workers() const {
  int sum = 0;
  for (const auto& pool : pools) sum += pool.pool.nodes * pool.pool.gpus_per_node;
  return sum;
}

Bytes gpu_memory(const traces::TraceBatch& batch) {
  double sum = 0;
  for (const auto& [kind, bytes] : batch.memory_bytes)
    if (!kind.starts_with("host")) sum += bytes;
  return Bytes{sum};
}

Scenario read_scenario(const JsonNode& node, ScenarioInputCache& cache) {
  JsonObject in(node);
  check_schema(in, kScenarioSchema);
  Fingerprint fingerprint(node);
  Scenario scenario;
  scenario.file = node.file();
  scenario.content = node.value().dump();
  const JsonNode workload = in.required("workload");
  const JsonNode platform = in.required("platform");
  // The number of steps of a target depends on the number of workers and on whose batches count, so these are read
  // first.
  read_pools(platform, scenario, fingerprint, cache);
  read_synchronization(in.required("synchronization"), scenario);
  read_workload(workload, scenario, fingerprint, cache);
  read_optional_sections([&](const char* key) { return in.optional(key); }, scenario, fingerprint);
  scenario.seed = in.required("seed").as_seed();
  in.finish();
  complete(scenario, std::move(fingerprint));
  return scenario;
}

Scenario read_scenario(const JsonNode& node) {
  ScenarioInputCache cache;
  return read_scenario(node, cache);
}

Json document_of(const ScenarioParts& parts) {
  Json out = {{"schema", kScenarioSchema}, {"seed", parts.seed}};
  for (const auto& [key, section] : parts.sections) out[key] = section.value();
  Json pools = Json::array();
  for (const RentedNodes& rented : parts.nodes) {
    Json pool = {{"catalog", rented.catalog},
                 {"region", rented.pool.region},
                 {"instance", rented.pool.instance},
                 {"nodes", rented.pool.nodes},
                 {"market", platforms::to_string(rented.pool.market)}};
    if (rented.pool.gpus_per_node < rented.platform->instance(rented.pool.instance).gpus)
      pool["gpus_per_node"] = rented.pool.gpus_per_node;
    if (!rented.name.empty()) pool["name"] = rented.name;
    pools.push_back(std::move(pool));
  }
  if (pools.size() == 1)
    out["platform"] = pools[0];
  else
    out["platform"]["pools"] = std::move(pools);
  if (!parts.allowed_regions.empty()) out["platform"]["allowed_regions"] = parts.allowed_regions;
  return out;
}

Scenario make_scenario(const ScenarioParts& parts, ScenarioInputCache& cache) {
  Json document = document_of(parts);
  Scenario scenario;
  scenario.file = parts.file;
  scenario.content = document.dump();
  Fingerprint fingerprint(std::move(document));
  scenario.allowed_regions = parts.allowed_regions;
  for (std::size_t i = 0; i < parts.nodes.size(); ++i) {
    scenario.pools.push_back(pool_of(parts.nodes[i]));
    fingerprint.replace(parts.nodes.size() == 1 ? "/platform/catalog" : fmt::format("/platform/pools/{}/catalog", i),
                        parts.nodes[i].catalog_hash);
  }
  read_synchronization(parts.sections.at("synchronization"), scenario);
  read_workload(parts.sections.at("workload"), scenario, fingerprint, cache);
  const SectionOf section = [&](const char* key) -> std::optional<JsonNode> {
    const auto found = parts.sections.find(key);
    return found == parts.sections.end() ? std::nullopt : std::optional(found->second);
  };
  read_optional_sections(section, scenario, fingerprint);
  scenario.seed = parts.seed;
  complete(scenario, std::move(fingerprint));
  return scenario;
}

void set_seed(Scenario& scenario, std::uint64_t seed) {
  scenario.seed = seed;
  scenario.hash = fmt::format("{:016x}", fnv1a(fmt::format("{} {}", scenario.hash_without_seed, seed)));
}

Scenario with_seed(Scenario scenario, std::uint64_t seed) {
  set_seed(scenario, seed);
  return scenario;
}

Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  return read_scenario(JsonNode::load(file, overrides));
}

}  // namespace ganymede::sim
