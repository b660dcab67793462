#include "studies/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "plan/cheapest.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
#include "sim/run/simulate.hpp"
#include "studies/shards.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::studies {
namespace {

constexpr std::int64_t kMaxGpus = 65536;
/// Each combination is a scenario with a platform of its own, of some 100 kB.
constexpr double kMaxCombinations = 10'000;

/// One entry of a study's "platforms".
struct StudyPlatform {
  std::string catalog;  // a provider's name, or a path
  std::string overlay;  // path of a file; "" for none
  platforms::Platform platform;
  std::string region;
  std::string market;
  std::string gpu;       // a name or family, or "" if the entry names an instance
  std::string instance;  // or "" if the entry names a GPU
  Json more;             // other members for a scenario's "platform", unchanged
};

/// The path of the file that `node` names, in a form that does not depend on the folder of the study; names of embedded
/// traces stay.
std::string resolved_path(const JsonNode& node) { return traces::trace_name(node); }

std::vector<std::string> priced_regions(const platforms::Platform& platform) {
  std::set<std::string> regions;
  for (const auto& instance : platform.instances)
    for (const auto& price : instance.prices) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

/// Names and families of the platform's GPUs.
std::vector<std::string> gpu_names(const platforms::Platform& platform) {
  std::set<std::string> names;
  for (const auto& gpu : platform.gpus) names.insert({gpu.name, gpu.family});
  return {names.begin(), names.end()};
}

StudyPlatform read_platform_entry(const JsonNode& node) {
  JsonObject in(node);
  StudyPlatform entry;
  platforms::PlatformChoice choice = platforms::read_platform_choice(in);
  entry.platform = std::move(choice.platform);
  // The scenarios made from this entry have no file to which a path could be relative, so that paths are resolved here.
  entry.catalog = platforms::is_provider(choice.catalog) ? choice.catalog : (choice.folder / choice.catalog).string();
  entry.overlay = choice.overlay.string();
  entry.region = in.required("region").as_choice(priced_regions(entry.platform));
  auto market = in.optional("market");
  entry.market = market ? std::string(platforms::to_string(platforms::read_market(*market))) : "on-demand";
  const JsonNode what = in.one_of("gpu", "instance");
  if (what.pointer().ends_with("/gpu"))
    entry.gpu = what.as_choice(gpu_names(entry.platform));
  else
    entry.instance = entry.platform.instance(what.as_string(), &what).name;
  entry.more = Json::object();
  for (const char* key : {"max_nodes", "notice", "lifetimes"})
    if (auto value = in.optional(key)) entry.more[key] = value->value();
  if (auto spot = in.optional("spot")) {
    entry.more["spot"] = spot->value();
    if (spot->is_object() && spot->value().contains("capacity"))
      entry.more["spot"]["capacity"] = resolved_path(spot->child("capacity"));
  }
  for (const char* key : {"capacity", "prices", "carbon"})
    if (auto file = in.optional(key)) entry.more[key] = resolved_path(*file);
  in.finish();
  return entry;
}

/// The "platform" member of a scenario on `count` GPUs.
Json platform_member(const StudyPlatform& entry, int count) {
  Json platform = entry.more;
  platform.update({{"catalog", entry.catalog}, {"region", entry.region}, {"market", entry.market}});
  if (!entry.overlay.empty()) platform["overlay"] = entry.overlay;
  if (entry.instance.empty()) {
    const std::string gpus[] = {entry.gpu};
    const plan::InstanceSet set =
        plan::cheapest_instances(entry.platform, gpus, count, entry.region, *platforms::parse_market(entry.market));
    platform["instance"] = set.instance->name;
    platform["nodes"] = set.nodes;
    platform["gpus_per_node"] = set.gpus_per_node;
  } else {
    const platforms::Instance& instance = entry.platform.instance(entry.instance);
    const int nodes = (count + instance.gpus - 1) / instance.gpus;
    if (count % nodes != 0)
      throw ConfigError(fmt::format("{} GPUs cannot be spread evenly over {} nodes; a run uses the same number on each",
                                    count, nodes));
    platform["instance"] = instance.name;
    platform["nodes"] = nodes;
    platform["gpus_per_node"] = count / nodes;
  }
  return platform;
}

std::vector<std::string> read_schemes(const JsonNode& node) {
  std::vector<std::string> schemes;
  for (const auto& scheme : node.as_array()) schemes.push_back(sim::read_scheme(scheme).name());
  if (schemes.empty()) node.expected("at least one scheme");
  return schemes;
}

/// Runs `work` and adds `label` to the message of an exception that it throws.
template <class Work>
auto with_label(const std::string& label, Work&& work) {
  try {
    return work();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{} (run: {})", error.what(), label));
  } catch (const Infeasible& error) {
    throw Infeasible(fmt::format("{} (run: {})", error.what(), label));
  }
}

/// The seeds from `first` on.
std::vector<std::uint64_t> seeds_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
  return seeds;
}

std::vector<std::uint64_t> read_seeds(const JsonNode& node) {
  if (node.is_object()) {
    JsonObject in(node);
    const std::uint64_t first = in.required("first").as_seed();
    const auto count = static_cast<std::uint64_t>(in.required("count").as_integer(1, 1'000'000));
    in.finish();
    return seeds_from(first, count);
  }
  std::vector<std::uint64_t> seeds;
  for (const auto& seed : node.as_array()) {
    seeds.push_back(seed.as_seed());
    if (std::find(seeds.begin(), seeds.end() - 1, seeds.back()) != seeds.end() - 1) seed.expected("each seed once");
  }
  if (seeds.empty()) node.expected("at least one seed");
  return seeds;
}

/// Reads a list of policies, each as the member "policy" of a scenario.
std::vector<Json> read_policies(const JsonNode& node) {
  std::vector<Json> policies;
  for (const auto& entry : node.as_array()) {
    Json policy = entry.value();
    if (entry.is_string()) policy = Json::object({{"name", entry.as_string()}});
    if (!policy.is_object() || !policy.contains("name"))
      entry.expected("a policy's name, or an object with its \"name\"");
    if (policy.contains("table")) policy["table"] = resolved_path(entry.child("table"));
    if (policy.contains("command") && policy["command"].is_string())
      policy["command"] = sim::shell_command(policy["command"].get<std::string>(), entry.directory());
    if (policy.contains("command") && policy["command"].is_array())
      for (auto& word : policy["command"]) {
        const auto beside = entry.directory() / word.get<std::string>();
        if (std::filesystem::is_regular_file(beside)) word = beside.string();
      }
    policies.push_back(std::move(policy));
  }
  if (policies.empty()) node.expected("at least one policy");
  return policies;
}

/// Throws ConfigError if a study has more combinations, or runs, than any may have, and BudgetExceeded for more than
/// fit in memory.
void check_size(const JsonNode& study, double combinations, double seeds) {
  if (combinations > kMaxCombinations)
    study.fail(
        fmt::format("found {:.0f} combinations of platforms, GPU counts, schemes and policies, expected at most "
                    "{:.0f}; split the study",
                    combinations, kMaxCombinations));
  if (combinations * seeds > static_cast<double>(kMaxRuns))
    study.fail(
        fmt::format("found {:.0f} runs ({:.0f} combinations with {:.0f} seeds each), expected at most {}; "
                    "split the study",
                    combinations * seeds, combinations, seeds, kMaxRuns));
  constexpr double kOfCombination = 100e3, kOfRun = 100;  // bytes; a run is a seed beside what it shares
  check_memory(Bytes{combinations * kOfCombination + combinations * seeds * kOfRun},
               fmt::format("{}: /seeds: a study of {} runs", study.file(),
                           with_thousands(static_cast<std::int64_t>(combinations * seeds))));
}

/// The members of a scenario that all runs of a study share.
Json read_common(JsonObject& in) {
  Json common = {{"schema", "ganymede.scenario/1"}};
  const JsonNode stated = in.required("workload");
  Json workload = stated.value();
  // Relative paths in the workload start at the study's file.
  const auto resolve = [](Json& place, const JsonNode& node, const char* member, const auto& resolved) {
    if (place.is_object() && place.contains(member) && place[member].is_string())
      place[member] = resolved(node.child(member));
  };
  resolve(workload, stated, "trace", resolved_path);
  resolve(workload, stated, "recipe",
          [](const JsonNode& node) { return traces::recipe_from(node.as_string(), node.directory()); });
  if (workload.is_object() && workload.contains("quality"))
    resolve(workload["quality"], stated.child("quality"), "curve", resolved_path);
  common["workload"] = workload;
  common["synchronization"] = Json::object();
  if (auto sync = in.optional("synchronization")) common["synchronization"] = sync->value();
  auto overlap = in.optional("overlap");
  if (overlap) common["synchronization"]["overlap"] = overlap->as_bool();
  for (const char* key :
       {"storage", "checkpoint", "evaluation", "provisioning", "faults", "deadline", "budget", "fidelity"})
    if (auto node = in.optional(key)) common[key] = node->value();
  return common;
}

}  // namespace

std::string StudyRun::label() const { return fmt::format("{}, seed {}", *part, seed); }

Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  const JsonNode node = JsonNode::load(file, overrides);
  JsonObject in(node);
  check_schema(in, "ganymede.study/1");
  Study study;
  study.name = in.required("name").as_string();
  if (auto about = in.optional("about")) study.about = about->as_string();
  Json common = read_common(in);
  std::vector<StudyPlatform> platforms;
  const JsonNode platform_list = in.required("platforms");
  for (const auto& entry : platform_list.as_array()) platforms.push_back(read_platform_entry(entry));
  if (platforms.empty()) platform_list.expected("at least one platform");
  std::vector<int> counts;
  const JsonNode gpus = in.required("gpus");
  for (const auto& count : gpus.as_array()) counts.push_back(static_cast<int>(count.as_integer(1, kMaxGpus)));
  if (counts.empty()) gpus.expected("at least one count");
  const std::vector<std::string> schemes = read_schemes(in.required("schemes"));
  std::vector<Json> policies = {{{"name", "fixed"}}};
  if (auto list = in.optional("policies")) policies = read_policies(*list);
  if (const auto seeds = in.optional("seeds")) study.seeds = read_seeds(*seeds);
  const std::uint64_t first_seed = study.seeds.empty() ? 1 : study.seeds.front();
  in.finish();
  check_size(node, static_cast<double>(platforms.size() * counts.size() * schemes.size() * policies.size()),
             static_cast<double>(std::max<std::size_t>(1, study.seeds.size())));

  sim::ScenarioInputCache cache;
  int default_seeds = 1;
  std::vector<StudyRun> of_first_seed;
  std::set<std::string> seen;  // a machine may be named twice, as an instance and by its GPU: it runs once
  for (const auto& entry : platforms)
    for (const int count : counts)
      for (std::size_t s = 0; s < (count == 1 ? 1 : schemes.size()); ++s)
        for (const auto& policy : policies) {
          std::string label = fmt::format("{} {}, {} x {}{}", entry.platform.name, entry.region, count,
                                          entry.gpu.empty() ? "GPU" : entry.gpu, count == 1 ? "" : ", " + schemes[s]);
          if (policies.size() > 1) label += ", " + policy["name"].get<std::string>();
          const auto base = with_label(fmt::format("{}, seed {}", label, first_seed), [&] {
            using Base = std::shared_ptr<const sim::Scenario>;
            Json scenario = common;
            scenario["platform"] = platform_member(entry, count);
            scenario["synchronization"]["scheme"] = schemes[s];
            scenario["policy"] = policy;
            scenario["seed"] = first_seed;
            if (!seen.insert(scenario.dump()).second) return Base();
            return std::make_shared<const sim::Scenario>(
                sim::read_scenario(JsonNode::wrap(scenario, file.string(), ""), cache));
          });
          if (base == nullptr) continue;
          default_seeds = std::max(default_seeds, sim::default_seeds(*base));
          of_first_seed.push_back({std::make_shared<const std::string>(std::move(label)), base, first_seed});
        }
  // All combinations have the same seeds, so that they can be compared seed by seed.
  if (study.seeds.empty()) study.seeds = seeds_from(first_seed, static_cast<std::uint64_t>(default_seeds));
  for (const StudyRun& run : of_first_seed)
    for (const std::uint64_t seed : study.seeds) study.runs.push_back({run.part, run.base, seed});
  return study;
}

}  // namespace ganymede::studies
