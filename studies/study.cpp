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

namespace ganymede::studies {
namespace {

constexpr std::int64_t kMaxGpus = 65536;

/// One entry of a study's "platforms".
struct StudyPlatform {
  std::string catalog;  // a provider's name, or a path
  std::string overlay;  // path of a file; "" for none
  platforms::Platform platform;
  std::string region;
  std::string market;
  std::string gpu;       // a name or family, or "" if the entry names an instance
  std::string instance;  // or "" if the entry names a GPU
  nlohmann::json more;   // other members for a scenario's "platform", unchanged
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
  entry.more = nlohmann::json::object();
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
nlohmann::json platform_member(const StudyPlatform& entry, int count) {
  nlohmann::json platform = entry.more;
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

/// Reads a list of policies, each as the member "policy" of a scenario.
std::vector<nlohmann::json> read_policies(const JsonNode& node) {
  std::vector<nlohmann::json> policies;
  for (const auto& entry : node.as_array()) {
    nlohmann::json policy = entry.is_string() ? nlohmann::json{{"name", entry.as_string()}} : entry.value();
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

/// The members of a scenario that all runs of a study share.
nlohmann::json read_common(JsonObject& in) {
  nlohmann::json common = {{"schema", "ganymede.scenario/1"}};
  nlohmann::json workload = in.required("workload").value();
  // A relative path in the workload starts at the study's file.
  if (workload.is_object() && workload.contains("trace") && workload["trace"].is_string())
    workload["trace"] = resolved_path(in.required("workload").child("trace"));
  common["workload"] = workload;
  common["synchronization"] = nlohmann::json::object();
  if (auto sync = in.optional("synchronization")) common["synchronization"] = sync->value();
  auto overlap = in.optional("overlap");
  if (overlap) common["synchronization"]["overlap"] = overlap->as_bool();
  for (const char* key :
       {"storage", "checkpoint", "evaluation", "provisioning", "faults", "deadline", "budget", "fidelity"})
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

  sim::ScenarioInputCache cache;
  for (const auto& entry : platforms)
    for (const int count : counts)
      for (std::size_t s = 0; s < (count == 1 ? 1 : schemes.size()); ++s)
        for (const auto& policy : policies) {
          std::string label = fmt::format("{} {}, {} x {}{}", entry.platform.name, entry.region, count,
                                          entry.gpu.empty() ? "GPU" : entry.gpu, count == 1 ? "" : ", " + schemes[s]);
          if (policies.size() > 1) label += ", " + policy["name"].get<std::string>();
          const auto base = with_label(fmt::format("{}, seed {}", label, seeds.front()), [&] {
            nlohmann::json scenario = common;
            scenario["platform"] = platform_member(entry, count);
            scenario["synchronization"]["scheme"] = schemes[s];
            scenario["policy"] = policy;
            scenario["seed"] = seeds.front();
            return std::make_shared<const sim::Scenario>(
                sim::read_scenario(JsonNode::wrap(scenario, file.string(), ""), cache));
          });
          for (const std::uint64_t seed : seeds)
            study.runs.push_back({fmt::format("{}, seed {}", label, seed), base, seed});
        }
  return study;
}

namespace {

/// What a child process sends: the facts in one line, separated by tabs and with all digits, and the result in the
/// next.
std::string answer_of(const sim::Result& result) {
  const std::string line = sim::result_line(result);
  const RunFacts facts = facts_of(nlohmann::ordered_json::parse(line));
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n{}", facts.place, facts.policy,
                     facts.seed, facts.time_s, facts.time_low_s, facts.time_high_s, facts.usd, facts.usd_low,
                     facts.usd_high, facts.gpu_hours, facts.kg_co2e, facts.losses, facts.lost_training_s,
                     facts.met ? 1 : 0, line);
}

/// Reads what answer_of() wrote.
FinishedRun read_answer(const std::string& text) {
  FinishedRun run;
  const std::size_t end = text.find('\n');
  std::istringstream cells(text.substr(0, end));
  RunFacts& facts = run.facts;
  std::getline(cells, facts.place, '\t');
  std::getline(cells, facts.policy, '\t');
  cells >> facts.seed >> facts.time_s >> facts.time_low_s >> facts.time_high_s >> facts.usd >> facts.usd_low >>
      facts.usd_high >> facts.gpu_hours >> facts.kg_co2e >> facts.losses >> facts.lost_training_s >> facts.met;
  run.line = text.substr(end + 1);
  return run;
}

/// The `ganymede.sweep/1` of the runs whose indices are in `which`.
std::string sweep_json(const Study& study, const std::vector<FinishedRun>& runs, const std::vector<std::size_t>& which,
                       const nlohmann::ordered_json& failures, const Summary& summary) {
  std::string out = fmt::format("{{\n  \"schema\": \"ganymede.sweep/1\",\n  \"study\": {},\n  \"runs\": [",
                                nlohmann::json(study.name).dump());
  std::size_t size = out.size();
  for (const std::size_t i : which) size += runs[i].line.size() + 8;
  out.reserve(size + 65536);
  const char* before = "\n    ";
  for (const std::size_t i : which) {
    out.append(before).append(runs[i].line);
    before = ",\n    ";
  }
  return out.append(fmt::format("],\n  \"failed\": {},\n  \"groups\": {},\n  \"rankings\": {}\n}}\n", failures.dump(2),
                                summary.groups.dump(2), summary.rankings.dump(2)));
}

/// The runs of a study: which are done, with their results, and which are still to be simulated.
struct StudyProgress {
  std::vector<std::optional<FinishedRun>> results;  ///< one for each run; none: not done
  std::vector<std::size_t> pending;                 ///< indices of the runs that the journal did not have
  std::vector<ChildOutcome> failures;               ///< one for each pending run; `ok` unless it has no result
};

/// Takes the results that the journal has; all other runs are pending.
StudyProgress resume(const Study& study, const std::map<std::string, FinishedRun>& known) {
  StudyProgress progress;
  progress.results.resize(study.runs.size());
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const auto earlier = known.empty() ? known.end() : known.find(study.runs[i].scenario().hash);
    if (earlier == known.end())
      progress.pending.push_back(i);
    else
      progress.results[i] = earlier->second;
  }
  progress.failures.resize(progress.pending.size());
  return progress;
}

/// Simulates the pending runs and appends each result to the journal as it comes.
void simulate_pending(const Study& study, int jobs, const std::function<void(std::size_t)>& report_done,
                      const std::filesystem::path& journal, StudyProgress& progress) {
  std::ofstream kept;
  if (!journal.empty()) kept.open(journal, std::ios::app);
  const bool message = std::any_of(study.runs.begin(), study.runs.end(),
                                   [](const StudyRun& run) { return run.base->fidelity == sim::Fidelity::message; });
  sim::StepDistributionCache cache;  // each child process forks a copy
  // A child process copies each scenario once, and then changes only its seed.
  std::map<const sim::Scenario*, sim::Scenario> copies;
  const auto work = [&](std::size_t i) {
    const StudyRun& run = study.runs[progress.pending[i]];
    sim::Scenario& scenario = copies.try_emplace(run.base.get(), *run.base).first->second;
    sim::set_seed(scenario, run.seed);
    return answer_of(sim::simulate(scenario, cache));
  };
  run_children(
      progress.pending.size(), jobs, work,
      [&](std::size_t done) {
        if (report_done) report_done(done + study.runs.size() - progress.pending.size());
      },
      message ? ChildUse::once : ChildUse::reused,
      [&](std::size_t i, const ChildOutcome& outcome) {
        if (outcome.kind != ChildOutcome::Kind::ok) {
          progress.failures[i] = outcome;
          return;
        }
        FinishedRun run = read_answer(outcome.text);
        if (kept.is_open()) kept << run.line + "\n" << std::flush;
        progress.results[progress.pending[i]] = std::move(run);
      });
}

/// The array "failed" of the sweep; counts the failures in `outcome`. Throws ConfigError if a run's input is wrong.
nlohmann::ordered_json failures_json(const Study& study, const StudyProgress& progress, StudyOutcome& outcome) {
  auto failures = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < progress.failures.size(); ++i) {
    const ChildOutcome& failure = progress.failures[i];
    const StudyRun& run = study.runs[progress.pending[i]];
    if (failure.kind == ChildOutcome::Kind::ok) continue;
    if (failure.kind == ChildOutcome::Kind::config_error) rethrow(failure, run.label + ": ");
    const bool endless = failure.kind == ChildOutcome::Kind::infeasible;
    ++(endless ? outcome.endless : outcome.failed);
    if (outcome.first_reason.empty()) outcome.first_reason = run.label + ": " + failure.text;
    failures.push_back({{"run", run.label},
                        {"policy", run.base->policy.policy->name},
                        {"seed", run.seed},
                        {"kind", endless ? "infeasible" : "failure"},
                        {"reason", failure.text}});
  }
  return failures;
}

}  // namespace

StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress,
                       const std::filesystem::path& journal, const JournalCheck& check) {
  StudyProgress state = resume(study, read_journal(journal, check));
  simulate_pending(study, jobs, progress, journal, state);
  StudyOutcome outcome;
  const auto failures = failures_json(study, state, outcome);
  std::vector<FinishedRun> finished;
  std::vector<RunFacts> facts;
  std::vector<std::size_t> all;
  for (auto& run : state.results)
    if (run) {
      all.push_back(finished.size());
      facts.push_back(run->facts);
      finished.push_back(std::move(*run));
    }
  const Summary summary = summarize(facts);
  outcome.json = sweep_json(study, finished, all, failures, summary);
  const bool grouped = summary.groups.size() < finished.size() || !summary.rankings.empty();
  outcome.brief = sweep_json(study, finished, grouped ? summary.firsts : all, failures, summary);
  return outcome;
}

}  // namespace ganymede::studies
