#include "sim/run/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/file.hpp"
#include "common/random.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"

namespace ganymede {
namespace {

constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
constexpr std::int64_t kMaxNodes = 65536;
// Every message of a step is simulated: a ring of 512 workers takes some ten seconds, and the cost grows with their
// square.
constexpr int kMaxWorkers = 65536;
constexpr std::int64_t kMaxBatch = 1 << 24;

std::string hexadecimal(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

/// What a scenario says once the files that it names are replaced by their content: the same wherever they lie.
class Fingerprint {
 public:
  explicit Fingerprint(const JsonNode& node) : content_(node.value()) {}
  void replace(const char* pointer, std::string_view content) {
    content_[nlohmann::json::json_pointer(pointer)] = hexadecimal(fnv1a(content));
  }
  std::string hash() const { return hexadecimal(fnv1a(content_.dump())); }

 private:
  nlohmann::json content_;
};

Dataset read_dataset(const JsonNode& node) {
  JsonObject in(node);
  Dataset dataset;
  dataset.name = in.required("name").as_string();
  dataset.images = in.required("images").as_integer(1, kMaxSteps);
  if (auto bytes = in.optional("bytes_per_image")) dataset.bytes_per_image = bytes->as_number(0, 1e12);
  in.finish();
  return dataset;
}

void read_target(JsonObject& in, Scenario& scenario) {
  const std::int64_t global_batch = std::int64_t{scenario.batch().batch} * scenario.workers();
  const auto steps_for = [&](std::int64_t images) { return (images + global_batch - 1) / global_batch; };
  auto steps = in.optional("steps");
  auto epochs = in.optional("epochs");
  auto images = in.optional("images");
  if (auto quality = in.optional("quality"))
    quality->fail("a quality target is not supported yet, expected \"steps\", \"epochs\" or \"images\"");
  if (int{steps.has_value()} + int{epochs.has_value()} + int{images.has_value()} != 1)
    in.node().fail("expected exactly one of \"steps\", \"epochs\" and \"images\"");
  if (steps) {
    scenario.steps = steps->as_integer(1, kMaxSteps);
    scenario.images = scenario.steps * global_batch;
  } else if (images) {
    scenario.images = images->as_integer(1, kMaxSteps);
    scenario.steps = steps_for(scenario.images);
  } else {
    if (scenario.dataset.images == 0)
      epochs->fail("epochs need \"dataset\" beside them, to know how many images one has");
    const std::int64_t count = epochs->as_integer(1, kMaxSteps / scenario.dataset.images);
    scenario.steps = count * steps_for(scenario.dataset.images);
    scenario.images = count * scenario.dataset.images;
  }
}

void read_workload(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  const JsonNode trace = in.required("trace");
  const std::filesystem::path file = trace.directory() / trace.as_string();
  const std::string text = [&] {
    try {
      return read_file(file);
    } catch (const ConfigError& error) {
      trace.fail(fmt::format("{}; `ganymede train --trace FILE` records one", error.what()));
    }
  }();
  scenario.trace = read_step_trace(JsonNode::parse(text, file.string()));
  fingerprint.replace("/workload/trace", text);

  const JsonNode batch = in.required("batch_per_gpu");
  const auto wanted = static_cast<int>(batch.as_integer(1, kMaxBatch));
  const TraceBatch* entry = scenario.trace.find_batch(wanted);
  if (!entry) {
    std::string recorded;
    for (const auto& known : scenario.trace.batches)
      recorded += (recorded.empty() ? "" : ", ") + std::to_string(known.batch);
    batch.expected(fmt::format("a batch size that {} has recorded ({})", file.string(), recorded));
  }
  scenario.batch_entry = static_cast<std::size_t>(entry - scenario.trace.batches.data());
  if (std::count_if(scenario.trace.batches.begin(), scenario.trace.batches.end(),
                    [&](const TraceBatch& other) { return other.batch == wanted; }) > 1)
    scenario.warnings.push_back(fmt::format(
        "the trace is of a growing model: every step is simulated as one of its last stage, {}", entry->stage));
  if (auto dataset = in.optional("dataset")) scenario.dataset = read_dataset(*dataset);
  read_target(in, scenario);
  in.finish();
}

/// Where `instance` has a price.
std::vector<std::string> priced_regions(const Instance& instance) {
  std::set<std::string> regions;
  for (const auto& price : instance.prices) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

void read_pool(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  if (auto pools = in.optional("pools"))
    pools->fail("several pools in one run are not supported yet, expected \"catalog\" and \"instance\"");
  PlatformChoice choice = read_platform_choice(in);
  scenario.platform = std::move(choice.platform);
  scenario.catalog = choice.catalog;
  const bool by_name = is_provider(scenario.catalog);
  fingerprint.replace("/platform/catalog", by_name ? std::string(catalog_text(scenario.catalog))
                                                   : read_file(choice.folder / scenario.catalog));
  if (!choice.overlay.empty()) fingerprint.replace("/platform/overlay", choice.overlay_text);

  const JsonNode instance_at = in.required("instance");
  const Instance& instance = scenario.platform.instance(instance_at.as_string(), &instance_at);
  scenario.pool.instance = instance.name;

  auto nodes = in.optional("nodes");
  scenario.pool.nodes = nodes ? static_cast<int>(nodes->as_integer(1, kMaxNodes)) : 1;
  if (nodes && instance.available && scenario.pool.nodes > *instance.available)
    nodes->expected(fmt::format("at most {}: the platform has no more of {}", *instance.available, instance.name));
  auto gpus = in.optional("gpus_per_node");
  scenario.pool.gpus_per_node = gpus ? static_cast<int>(gpus->as_integer(1, kMaxNodes)) : instance.gpus;
  if (gpus && scenario.pool.gpus_per_node > instance.gpus)
    gpus->expected(fmt::format("at most {}: {} has no more GPUs", instance.gpus, instance.name));

  if (std::int64_t{scenario.pool.nodes} * scenario.pool.gpus_per_node > kMaxWorkers)
    node.fail(fmt::format("found {} nodes with {} GPUs each, expected at most {} GPUs in one run", scenario.pool.nodes,
                          scenario.pool.gpus_per_node, kMaxWorkers));

  auto market = in.optional("market");
  scenario.pool.market = market ? read_market(*market) : Market::on_demand;
  auto region = in.optional("region");
  if (region) {
    scenario.pool.region = region->as_string();
  } else {
    const auto regions = priced_regions(instance);
    if (regions.empty()) instance_at.fail(fmt::format("{} has no price in any region", instance.name));
    if (regions.size() > 1) in.finish();  // a misspelt key is the better explanation
    if (regions.size() > 1)
      node.fail(fmt::format("the key \"region\" is missing; {} has prices in {}", instance.name, list_of(regions)));
    scenario.pool.region = regions.front();
  }
  scenario.price = scenario.platform.price(instance, scenario.pool.region, scenario.pool.market,
                                           region ? &*region : &instance_at, market ? &*market : nullptr);
  in.finish();
}

void read_synchronization(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  if (auto mode = in.optional("mode")) mode->as_choice({"all-reduce"});
  scenario.scheme = read_scheme(in.required("scheme"));
  if (auto overlap = in.optional("overlap")) scenario.overlap = overlap->as_bool();
  if (auto compression = in.optional("compression")) compression->as_choice({"none"});
  in.finish();
}

// Storage and checkpoints are checked, so that a scenario stays valid, and then left out with a warning, as runs do not
// simulate them yet.

void read_storage(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  for (const char* use : {"dataset", "checkpoint"})
    if (auto name = in.optional(use)) scenario.platform.storage_class(name->as_string(), &*name);
  in.finish();
  scenario.warnings.emplace_back(
      "storage is not simulated yet: the dataset is taken as local, and no volume is billed");
}

void read_checkpoint(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  const JsonNode every = in.required("every");
  const std::string text = every.as_string();
  const bool epochs =
      text.ends_with("epoch") && text.find_first_not_of("0123456789") == text.size() - 5 && text.size() > 5;
  if (text != "daly" && !epochs) every.as_positive<Seconds>();
  in.finish();
  scenario.warnings.emplace_back("checkpoints are not simulated yet: the run is as long as if none were written");
}

void read_policy(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  std::vector<std::string> names;
  for (const auto& policy : policies()) names.emplace_back(policy.name);
  scenario.policy = find_policy(in.required("name").as_choice(names));
  in.finish();
}

void read_fidelity(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  if (auto mode = in.optional("mode"))
    scenario.fidelity = mode->as_choice({"sampled", "message"}) == "message" ? Fidelity::message : Fidelity::sampled;
  if (auto precision = in.optional("precision")) scenario.precision = precision->as_number(1e-4, 1);
  in.finish();
}

void check_memory(const Scenario& scenario) {
  const Bytes needed = gpu_memory(scenario.batch());
  const Gpu& gpu = scenario.gpu();
  if (needed <= gpu.memory) return;
  std::string fits;
  for (const auto& other : scenario.platform.gpus)
    if (needed <= other.memory)
      fits += fmt::format("{}{} ({})", fits.empty() ? "" : ", ", other.name, to_string(other.memory));
  throw Infeasible(
      fmt::format("{}: batch {} of {} needs {} of GPU memory, {} has {}; {}", scenario.file, scenario.batch().batch,
                  scenario.trace.model, to_string(needed), gpu.name, to_string(gpu.memory),
                  fits.empty() ? "nothing in this platform holds it: take a smaller batch" : "it would fit " + fits));
}

}  // namespace

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
  // How many steps a target takes depends on the number of workers.
  read_pool(platform, scenario, fingerprint);
  read_workload(workload, scenario, fingerprint);
  read_synchronization(in.required("synchronization"), scenario);
  if (auto storage = in.optional("storage")) read_storage(*storage, scenario);
  if (auto checkpoint = in.optional("checkpoint")) read_checkpoint(*checkpoint, scenario);
  scenario.policy = find_policy("fixed");
  if (auto policy = in.optional("policy")) read_policy(*policy, scenario);
  if (auto fidelity = in.optional("fidelity")) read_fidelity(*fidelity, scenario);
  scenario.seed = in.required("seed").as_seed();
  in.finish();
  scenario.hash = fingerprint.hash();
  check_memory(scenario);
  return scenario;
}

Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  return read_scenario(JsonNode::load(file, overrides));
}

}  // namespace ganymede
