#include "serve/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/embedded.hpp"
#include "kernel/checkpoint.hpp"
#include "platforms/catalog.hpp"
#include "policies/policy.hpp"
#include "sim/collectives/allreduce.hpp"
#include "traces/recorded.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// A data set whose images have the model's size.
std::string usual_dataset(const std::string& model) {
  if (model == "mlp-gan" || model == "dcgan-28") return "mnist";
  if (model == "dcgan-32") return "cifar-10";
  if (model == "dcgan-64" || model == "progressive-gan" || model == "vae") return "celeba";
  return "ffhq";
}

WorkloadChoice workload_of(const std::string& trace, const std::string& about) {
  const JsonNode at = JsonNode::wrap(nlohmann::json(trace), trace, "");
  const StepTrace steps = read_step_trace(JsonNode::parse(trace_text(at), trace));
  std::set<int> batches;
  for (const TraceBatch& batch : steps.batches) batches.insert(batch.batch);
  return {trace,
          steps.model,
          about.empty() ? "recorded on " + steps.device.name : about,
          {batches.begin(), batches.end()},
          usual_dataset(steps.model)};
}

/// Sizes of one image as the data set stores it, pixels of one byte.
OrderedJson datasets() {
  const auto row = [](const char* name, std::int64_t images, int bytes) {
    return OrderedJson{{"name", name}, {"images", images}, {"bytes_per_image", bytes}};
  };
  return OrderedJson::array({row("mnist", 60'000, 28 * 28), row("cifar-10", 50'000, 32 * 32 * 3),
                             row("celeba", 202'599, 64 * 64 * 3), row("ffhq", 70'000, 256 * 256 * 3)});
}

template <class Names>
std::size_t index_of(const Names& names, const std::string& name) {
  return static_cast<std::size_t>(std::distance(names.begin(), std::find(names.begin(), names.end(), name)));
}

/// Regions and markets are named once; an offer is [region, market, USD an hour].
OrderedJson platforms_of(const std::string& name) {
  const Platform& platform = catalog(name);
  std::set<std::string> regions;
  for (const Instance& instance : platform.instances)
    if (instance.retired.empty())
      for (const Price& price : instance.prices) regions.insert(price.region);
  OrderedJson instances = OrderedJson::array();
  for (const Instance& instance : platform.instances) {
    if (!instance.retired.empty()) continue;
    std::set<std::pair<std::size_t, std::size_t>> seen;  // a region's zones may have prices of their own
    OrderedJson offers = OrderedJson::array();
    for (const Price& price : instance.prices) {
      const auto place = std::pair{index_of(regions, price.region), static_cast<std::size_t>(price.market)};
      if (seen.insert(place).second) offers.push_back({place.first, place.second, decimal(price.per_hour)});
    }
    if (offers.empty()) continue;
    const Gpu& gpu = platform.gpu_of(instance);
    instances.push_back({{"name", instance.name},
                         {"gpu", gpu.name},
                         {"family", gpu.family},
                         {"kind", gpu.kind == Gpu::Kind::cpu ? "cpu" : "gpu"},
                         {"gpus", instance.gpus},
                         {"offers", std::move(offers)}});
  }
  return {{"name", name}, {"regions", regions}, {"instances", std::move(instances)}};
}

OrderedJson providers() {
  OrderedJson all = OrderedJson::array();
  for (const std::string& name : provider_names()) {
    OrderedJson one = platforms_of(name);
    if (!one["instances"].empty()) all.push_back(std::move(one));
  }
  return all;
}

/// All but the checkpoints, which may change while the server runs.
const OrderedJson& fixed_choices() {
  static const OrderedJson fixed = [] {
    OrderedJson workloads = OrderedJson::array();
    for (const WorkloadChoice& choice : workload_choices())
      workloads.push_back({{"trace", choice.trace},
                           {"model", choice.model},
                           {"about", choice.about},
                           {"batches", choice.batches},
                           {"dataset", choice.dataset}});
    OrderedJson schemes = OrderedJson::array();
    for (const AllReduceScheme& scheme : allreduce_schemes())
      schemes.push_back({{"name", scheme.name}, {"summary", scheme.summary}});
    OrderedJson policies = OrderedJson::array();
    for (const std::string& name : policy_choices())
      policies.push_back({{"name", name}, {"summary", find_policy(name)->summary}});
    return OrderedJson{{"workloads", workloads},    {"datasets", datasets()}, {"providers", providers()},
                       {"markets", market_names()}, {"schemes", schemes},     {"policies", policies}};
  }();
  return fixed;
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace

const std::vector<WorkloadChoice>& workload_choices() {
  static const std::vector<WorkloadChoice> choices = [] {
    std::vector<WorkloadChoice> all;
    for (const std::string& name : recorded_names()) all.push_back(workload_of(std::string(kRecorded) + name, ""));
    for (const std::string& name : names_of(embedded_layers()))
      all.push_back(workload_of(std::string(kLayers) + name, "counted from its layers, nothing measured"));
    return all;
  }();
  return choices;
}

const std::vector<std::string>& policy_choices() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Policy& policy : policies())
      if (policy.decide != nullptr && !policy.learns) all.emplace_back(policy.name);
    return all;
  }();
  return names;
}

Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder) {
  Checkpoints found = named;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (is_utf8(name) && it->is_directory(ignored) && kernel::has_checkpoints(it->path()))
      found.emplace(name, it->path());
  }
  return found;
}

nlohmann::ordered_json choices_json(const Checkpoints& checkpoints) {
  OrderedJson choices = fixed_choices();
  choices["checkpoints"] = OrderedJson::array();
  for (const auto& [name, path] : checkpoints) choices["checkpoints"].push_back(name);
  return choices;
}

}  // namespace ganymede::serve
