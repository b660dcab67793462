#include "studies/study.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "common/process.hpp"
#include "plan/cheapest.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede {
namespace {

constexpr std::int64_t kMaxGpus = 65536;

/// One entry of "platforms".
struct StudyPlatform {
  std::string catalog;  // as named
  std::string overlay;  // a file; "" for none
  Platform platform;
  std::string region;
  std::string market;
  std::string gpu;       // either a GPU to be held by the cheapest instances …
  std::string instance;  // … or an instance
};

std::vector<std::string> priced_regions(const Platform& platform) {
  std::set<std::string> regions;
  for (const auto& instance : platform.instances)
    for (const auto& price : instance.prices) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

/// Names and families.
std::vector<std::string> gpu_names(const Platform& platform) {
  std::set<std::string> names;
  for (const auto& gpu : platform.gpus) names.insert({gpu.name, gpu.family});
  return {names.begin(), names.end()};
}

StudyPlatform read_platform_entry(const JsonNode& node) {
  JsonObject in(node);
  StudyPlatform entry;
  PlatformChoice choice = read_platform_choice(in);
  entry.platform = std::move(choice.platform);
  // A scenario made from this entry has no file to start a relative path from.
  entry.catalog = is_provider(choice.catalog) ? choice.catalog : (choice.folder / choice.catalog).string();
  entry.overlay = choice.overlay.string();
  entry.region = in.required("region").as_choice(priced_regions(entry.platform));
  auto market = in.optional("market");
  entry.market = market ? std::string(to_string(read_market(*market))) : "on-demand";
  const JsonNode what = in.one_of("gpu", "instance");
  if (what.pointer().ends_with("/gpu"))
    entry.gpu = what.as_choice(gpu_names(entry.platform));
  else
    entry.instance = entry.platform.instance(what.as_string(), &what).name;
  in.finish();
  return entry;
}

/// The "platform" object of the scenario with `count` GPUs.
nlohmann::json place(const StudyPlatform& entry, int count) {
  nlohmann::json platform = {{"catalog", entry.catalog}, {"region", entry.region}, {"market", entry.market}};
  if (!entry.overlay.empty()) platform["overlay"] = entry.overlay;
  if (entry.instance.empty()) {
    const std::string gpus[] = {entry.gpu};
    const InstanceSet set = cheapest_instances(entry.platform, gpus, count, entry.region, *parse_market(entry.market));
    platform["instance"] = set.instance->name;
    platform["nodes"] = set.nodes;
    platform["gpus_per_node"] = set.gpus_per_node;
  } else {
    const Instance& instance = entry.platform.instance(entry.instance);
    const int nodes = (count + instance.gpus - 1) / instance.gpus;
    if (count % nodes != 0)
      throw ConfigError(
          fmt::format("{} GPUs cannot be spread evenly over {} nodes; a run uses as many on each", count, nodes));
    platform["instance"] = instance.name;
    platform["nodes"] = nodes;
    platform["gpus_per_node"] = count / nodes;
  }
  return platform;
}

std::vector<std::string> read_schemes(const JsonNode& node) {
  std::vector<std::string> schemes;
  for (const auto& scheme : node.as_array()) schemes.push_back(read_scheme(scheme).name());
  if (schemes.empty()) node.expected("at least one scheme");
  return schemes;
}

/// Runs `work` and puts `label` before the message of what it throws.
template <class Work>
auto labelled(const std::string& label, Work&& work) {
  try {
    return work();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{} (run: {})", error.what(), label));
  } catch (const Infeasible& error) {
    throw Infeasible(fmt::format("{} (run: {})", error.what(), label));
  }
}

}  // namespace

Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  const JsonNode node = JsonNode::load(file, overrides);
  JsonObject in(node);
  check_schema(in, "ganymede.study/1");
  Study study;
  study.name = in.required("name").as_string();
  if (auto about = in.optional("about")) study.about = about->as_string();
  const JsonNode workload = in.required("workload");
  std::vector<StudyPlatform> platforms;
  const JsonNode platform_list = in.required("platforms");
  for (const auto& entry : platform_list.as_array()) platforms.push_back(read_platform_entry(entry));
  if (platforms.empty()) platform_list.expected("at least one platform");
  std::vector<int> counts;
  const JsonNode gpus = in.required("gpus");
  for (const auto& count : gpus.as_array()) counts.push_back(static_cast<int>(count.as_integer(1, kMaxGpus)));
  if (counts.empty()) gpus.expected("at least one count");
  const std::vector<std::string> schemes = read_schemes(in.required("schemes"));
  std::vector<std::uint64_t> seeds;
  const JsonNode seed_list = in.required("seeds");
  for (const auto& seed : seed_list.as_array()) seeds.push_back(seed.as_seed());
  if (seeds.empty()) seed_list.expected("at least one seed");
  auto overlap = in.optional("overlap");
  const bool overlapped = overlap ? overlap->as_bool() : true;
  in.finish();

  // A path in the workload starts where the study says, whatever the working directory.
  nlohmann::json workload_json = workload.value();
  if (workload_json.is_object() && workload_json.contains("trace") && workload_json["trace"].is_string()) {
    const JsonNode trace = workload.child("trace");
    workload_json["trace"] = (trace.directory() / trace.as_string()).string();
  }
  for (const auto& entry : platforms) {
    for (const int count : counts) {
      for (std::size_t s = 0; s < (count == 1 ? 1 : schemes.size()); ++s) {
        for (const std::uint64_t seed : seeds) {
          StudyRun run{fmt::format("{} {}, {} x {}{}, seed {}", entry.platform.name, entry.region, count,
                                   entry.gpu.empty() ? "GPU" : entry.gpu, count == 1 ? "" : ", " + schemes[s], seed),
                       {}};
          run.scenario = labelled(run.label, [&] {
            const nlohmann::json scenario = {{"schema", "ganymede.scenario/1"},
                                             {"workload", workload_json},
                                             {"platform", place(entry, count)},
                                             {"synchronization", {{"scheme", schemes[s]}, {"overlap", overlapped}}},
                                             {"seed", seed}};
            return read_scenario(JsonNode::wrap(scenario, file.string(), ""));
          });
          study.runs.push_back(std::move(run));
        }
      }
    }
  }
  return study;
}

std::string run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress) {
  const auto outcomes = run_children(
      study.runs.size(), jobs, [&](std::size_t i) { return result_json(simulate(study.runs[i].scenario)); }, progress);
  for (std::size_t i = 0; i < outcomes.size(); ++i) rethrow(outcomes[i], study.runs[i].label + ": ");
  nlohmann::ordered_json out;
  out["schema"] = "ganymede.sweep/1";
  out["study"] = study.name;
  out["runs"] = nlohmann::ordered_json::array();
  for (const auto& outcome : outcomes) out["runs"].push_back(nlohmann::ordered_json::parse(outcome.text));
  return out.dump(2) + "\n";
}

}  // namespace ganymede
