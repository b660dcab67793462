#include "studies/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "common/file.hpp"
#include "common/process.hpp"
#include "plan/cheapest.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
#include "sim/run/simulate.hpp"
#include "studies/journal.hpp"
#include "studies/summary.hpp"
#include "traces/recorded.hpp"

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
  nlohmann::json more;   // members of a scenario's pool, as they stand
};

/// A file that `node` names, so that a scenario made of it finds it from anywhere.
std::string found(const JsonNode& node) { return trace_name(node); }

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
  entry.more = nlohmann::json::object();
  for (const char* key : {"max_nodes", "notice", "lifetimes"})
    if (auto value = in.optional(key)) entry.more[key] = value->value();
  if (auto spot = in.optional("spot")) {
    entry.more["spot"] = spot->value();
    if (spot->is_object() && spot->value().contains("capacity"))
      entry.more["spot"]["capacity"] = found(spot->child("capacity"));
  }
  for (const char* key : {"capacity", "prices", "carbon"})
    if (auto file = in.optional(key)) entry.more[key] = found(*file);
  in.finish();
  return entry;
}

/// The "platform" object of the scenario with `count` GPUs.
nlohmann::json place(const StudyPlatform& entry, int count) {
  nlohmann::json platform = entry.more;
  platform.update({{"catalog", entry.catalog}, {"region", entry.region}, {"market", entry.market}});
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

namespace {

std::vector<std::uint64_t> read_seeds(const JsonNode& node) {
  std::vector<std::uint64_t> seeds;
  if (node.is_object()) {
    JsonObject in(node);
    const std::uint64_t first = in.required("first").as_seed();
    const auto count = static_cast<std::uint64_t>(in.required("count").as_integer(1, 1'000'000));
    in.finish();
    for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
    return seeds;
  }
  for (const auto& seed : node.as_array()) seeds.push_back(seed.as_seed());
  if (seeds.empty()) node.expected("at least one seed");
  return seeds;
}

/// Each as a scenario's "policy".
std::vector<nlohmann::json> read_policies(const JsonNode& node) {
  std::vector<nlohmann::json> policies;
  for (const auto& entry : node.as_array()) {
    nlohmann::json policy = entry.is_string() ? nlohmann::json{{"name", entry.as_string()}} : entry.value();
    if (!policy.is_object() || !policy.contains("name"))
      entry.expected("a policy's name, or an object with its \"name\"");
    if (policy.contains("table")) policy["table"] = found(entry.child("table"));
    if (policy.contains("command") && policy["command"].is_string())
      policy["command"] = shell_command(policy["command"].get<std::string>(), entry.directory());
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

/// What all runs of a study have in common, as members of a scenario.
nlohmann::json read_common(JsonObject& in) {
  nlohmann::json common = {{"schema", "ganymede.scenario/1"}};
  nlohmann::json workload = in.required("workload").value();
  // A path in the workload starts where the study says, whatever the working directory.
  if (workload.is_object() && workload.contains("trace") && workload["trace"].is_string())
    workload["trace"] = found(in.required("workload").child("trace"));
  common["workload"] = workload;
  common["synchronization"] = nlohmann::json::object();
  if (auto sync = in.optional("synchronization")) common["synchronization"] = sync->value();
  auto overlap = in.optional("overlap");
  if (overlap) common["synchronization"]["overlap"] = overlap->as_bool();
  for (const char* key : {"storage", "checkpoint", "provisioning", "faults", "deadline", "budget", "fidelity"})
    if (auto node = in.optional(key)) common[key] = node->value();
  return common;
}

}  // namespace

Study load_study(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  const JsonNode node = JsonNode::load(file, overrides);
  JsonObject in(node);
  check_schema(in, "ganymede.study/1");
  Study study;
  study.name = in.required("name").as_string();
  if (auto about = in.optional("about")) study.about = about->as_string();
  nlohmann::json common = read_common(in);
  std::vector<StudyPlatform> platforms;
  const JsonNode platform_list = in.required("platforms");
  for (const auto& entry : platform_list.as_array()) platforms.push_back(read_platform_entry(entry));
  if (platforms.empty()) platform_list.expected("at least one platform");
  std::vector<int> counts;
  const JsonNode gpus = in.required("gpus");
  for (const auto& count : gpus.as_array()) counts.push_back(static_cast<int>(count.as_integer(1, kMaxGpus)));
  if (counts.empty()) gpus.expected("at least one count");
  const std::vector<std::string> schemes = read_schemes(in.required("schemes"));
  std::vector<nlohmann::json> policies = {{{"name", "fixed"}}};
  if (auto list = in.optional("policies")) policies = read_policies(*list);
  const std::vector<std::uint64_t> seeds = read_seeds(in.required("seeds"));
  in.finish();

  ScenarioInputCache cache;
  for (const auto& entry : platforms)
    for (const int count : counts)
      for (std::size_t s = 0; s < (count == 1 ? 1 : schemes.size()); ++s)
        for (const auto& policy : policies) {
          std::string label = fmt::format("{} {}, {} x {}{}", entry.platform.name, entry.region, count,
                                          entry.gpu.empty() ? "GPU" : entry.gpu, count == 1 ? "" : ", " + schemes[s]);
          if (policies.size() > 1) label += ", " + policy["name"].get<std::string>();
          const auto base = labelled(fmt::format("{}, seed {}", label, seeds.front()), [&] {
            nlohmann::json scenario = common;
            scenario["platform"] = place(entry, count);
            scenario["synchronization"]["scheme"] = schemes[s];
            scenario["policy"] = policy;
            scenario["seed"] = seeds.front();
            return std::make_shared<const Scenario>(read_scenario(JsonNode::wrap(scenario, file.string(), ""), cache));
          });
          for (const std::uint64_t seed : seeds)
            study.runs.push_back({fmt::format("{}, seed {}", label, seed), base, seed});
        }
  return study;
}

namespace {

// What a child answers: the facts in one line, the result in the next. Tab-separated, doubles to the last bit.
std::string answer_of(const Result& result) {
  const std::string line = result_line(result);
  const RunFacts facts = facts_of(nlohmann::ordered_json::parse(line));
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n{}", facts.place, facts.policy,
                     facts.seed, facts.time_s, facts.time_low_s, facts.time_high_s, facts.usd, facts.usd_low,
                     facts.usd_high, facts.gpu_hours, facts.kg_co2e, facts.losses, facts.lost_training_s,
                     facts.met ? 1 : 0, line);
}

Landed read_answer(const std::string& text) {
  Landed landed;
  const std::size_t end = text.find('\n');
  std::istringstream cells(text.substr(0, end));
  RunFacts& facts = landed.facts;
  std::getline(cells, facts.place, '\t');
  std::getline(cells, facts.policy, '\t');
  cells >> facts.seed >> facts.time_s >> facts.time_low_s >> facts.time_high_s >> facts.usd >> facts.usd_low >>
      facts.usd_high >> facts.gpu_hours >> facts.kg_co2e >> facts.losses >> facts.lost_training_s >> facts.met;
  landed.line = text.substr(end + 1);
  return landed;
}

/// The sweep with these of its runs.
std::string sweep_json(const Study& study, const std::vector<Landed>& landed, const std::vector<std::size_t>& which,
                       const nlohmann::ordered_json& failures, const Summary& summary) {
  std::string out = fmt::format("{{\n  \"schema\": \"ganymede.sweep/1\",\n  \"study\": {},\n  \"runs\": [",
                                nlohmann::json(study.name).dump());
  std::size_t size = out.size();
  for (const std::size_t i : which) size += landed[i].line.size() + 8;
  out.reserve(size + 65536);
  const char* before = "\n    ";
  for (const std::size_t i : which) {
    out.append(before).append(landed[i].line);
    before = ",\n    ";
  }
  return out.append(fmt::format("],\n  \"failed\": {},\n  \"groups\": {},\n  \"rankings\": {}\n}}\n", failures.dump(2),
                                summary.groups.dump(2), summary.rankings.dump(2)));
}

}  // namespace

StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress,
                       const std::filesystem::path& journal, const JournalCheck& check) {
  std::vector<std::optional<Landed>> found_or_run(study.runs.size());
  std::vector<std::size_t> to_do;
  auto known = read_journal(journal, check);
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const auto earlier = known.empty() ? known.end() : known.find(study.runs[i].scenario().hash);
    if (earlier == known.end())
      to_do.push_back(i);
    else
      found_or_run[i] = earlier->second;
  }
  std::ofstream kept;
  if (!journal.empty()) kept.open(journal, std::ios::app);
  const bool message = std::any_of(study.runs.begin(), study.runs.end(),
                                   [](const StudyRun& run) { return run.base->fidelity == Fidelity::message; });
  StepDistributionCache cache;              // of a child, which forks a copy
  std::map<const Scenario*, Scenario> own;  // of a child: copied once, then only their seed changes
  const auto work = [&](std::size_t i) {
    const StudyRun& run = study.runs[to_do[i]];
    Scenario& scenario = own.try_emplace(run.base.get(), *run.base).first->second;
    set_seed(scenario, run.seed);
    return answer_of(simulate(scenario, cache));
  };
  StudyOutcome result;
  std::vector<ChildOutcome> bad(to_do.size());
  run_children(
      to_do.size(), jobs, work,
      [&](std::size_t done) {
        if (progress) progress(done + study.runs.size() - to_do.size());
      },
      message ? ChildUse::once : ChildUse::reused,
      [&](std::size_t i, const ChildOutcome& outcome) {
        if (outcome.kind != ChildOutcome::Kind::ok) {
          bad[i] = outcome;
          return;
        }
        Landed landed = read_answer(outcome.text);
        if (kept.is_open()) kept << landed.line + "\n" << std::flush;
        found_or_run[to_do[i]] = std::move(landed);
      });
  auto failures = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const StudyRun& run = study.runs[to_do[i]];
    if (bad[i].kind == ChildOutcome::Kind::ok) continue;
    if (bad[i].kind == ChildOutcome::Kind::config_error) rethrow(bad[i], run.label + ": ");
    const bool endless = bad[i].kind == ChildOutcome::Kind::infeasible;
    ++(endless ? result.endless : result.failed);
    if (result.first_reason.empty()) result.first_reason = run.label + ": " + bad[i].text;
    failures.push_back({{"run", run.label},
                        {"policy", run.base->policy.policy->name},
                        {"seed", run.seed},
                        {"kind", endless ? "infeasible" : "failure"},
                        {"reason", bad[i].text}});
  }
  std::vector<Landed> landed;
  std::vector<RunFacts> facts;
  std::vector<std::size_t> all;
  for (auto& run : found_or_run)
    if (run) {
      all.push_back(landed.size());
      facts.push_back(run->facts);
      landed.push_back(std::move(*run));
    }
  const Summary summary = summarize(facts);
  result.json = sweep_json(study, landed, all, failures, summary);
  const bool grouped = summary.groups.size() < landed.size() || !summary.rankings.empty();
  result.brief = sweep_json(study, landed, grouped ? summary.firsts : all, failures, summary);
  return result;
}

}  // namespace ganymede
