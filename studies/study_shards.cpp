#include "studies/study_shards.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <unordered_map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "documents/result.hpp"
#include "plan/chosen_scenario.hpp"
#include "plan/request.hpp"
#include "plan/search.hpp"
#include "studies/sweep_rows.hpp"

namespace ganymede::studies {

ShardedWork sharded(const Study& study, const std::string& program) {
  ShardedWork work{.command = kSweepShards, .program = program, .name = study.name, .parts = {}, .seeds = study.seeds};
  for (std::size_t i = 0; i < study.runs.size(); i += study.seeds.size())
    work.parts.push_back({*study.runs[i].part, study.runs[i].base->hash_without_seed});
  return work;
}

ShardOutcome run_study_shard(const Study& study, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, ShardOptions options) {
  StudySimulator simulator(study);
  options.use = simulator.use();
  return run_shard(sharded(study, program), shard, folder,
                   {.work = [&](std::size_t run) { return simulator.row(run); },
                    .failed_row = [&](std::size_t run,
                                      const ChildOutcome& outcome) { return failed_row(study.runs[run], outcome); }},
                   options);
}

namespace {

/// The facts of a row's result. Throws ConfigError or JsonError unless it is the result of this run, whose key is the
/// hash of its scenario, and the facts that stand before it are its own.
RunFacts facts_of_row(const ShardedWork& work, std::size_t run, std::string_view row) {
  std::string_view text = row;
  (void)read_facts(text);
  const OrderedJson result = OrderedJson::parse(text);
  if (result.at("schema") != documents::kResultSchema)
    throw ConfigError(fmt::format("found {}, expected a {}", result.at("schema").dump(), documents::kResultSchema));
  RunFacts facts = facts_of(result);
  if (result.at("provenance").at("scenario_hash") != fmt::format("{:016x}", work.key(run)) ||
      facts.seed != work.seeds[run % work.seeds.size()])
    throw ConfigError("found the result of another run");
  if (row.substr(0, row.size() - text.size()) != facts_line(facts) + "\t")
    throw ConfigError("found facts that are not those of its result");
  return facts;
}

/// Throws ConfigError or JsonError unless the text is an entry of "failed" for this run. Returns why it failed.
std::string reason_of(const ShardedWork& work, std::size_t run, std::string_view text) {
  const auto row = Json::parse(text);
  const std::string label = row.at("run").get<std::string>();
  std::size_t same = run;  // runs with the same content have one row, which names the first
  if (label != work.label(run))
    for (same = 0; same < run && (work.key(same) != work.key(run) || work.label(same) != label);) ++same;
  if (label != work.label(same)) throw ConfigError("found the failure of another run, " + label);
  return label + ": " + row.at("reason").get<std::string>();
}

}  // namespace

MergedStudy::MergedStudy(ShardFolder& folder, const ShardFolder::Remark& remark) : folder_(folder) {
  const std::size_t runs = folder.work().size();
  facts_.resize(runs);
  std::map<RunGroup, std::shared_ptr<const RunGroup>> groups;
  folder.scan(
      [&](std::size_t run, RowKind kind, std::string_view text) {
        if (kind != RowKind::result) return (void)reason_of(folder.work(), run, text);
        RunFacts facts = facts_of_row(folder.work(), run, text);
        facts.group = groups.try_emplace(*facts.group, facts.group).first->second;
        facts_[run] = std::move(facts);
      },
      remark);
  for (std::size_t run = 0; run < runs; ++run) {
    const auto kind = folder.kind(run);
    if (!kind || *kind == RowKind::result) continue;
    ++(*kind == RowKind::endless ? outcome_.endless : outcome_.failed);
    if (!outcome_.first_reason.empty()) continue;
    folder.read(run, [&](const std::string& text) { outcome_.first_reason = reason_of(folder.work(), run, text); });
  }
  std::erase_if(facts_, [](const RunFacts& facts) { return !facts.group; });
}

void MergedStudy::write(const ContentSink& sink) const {
  SweepWriter writer(sink, folder_.work().name);
  const std::size_t runs = folder_.work().size();
  for (std::size_t run = 0; run < runs; ++run)
    if (folder_.kind(run) == RowKind::result)
      folder_.read(run, [&](const std::string& text) { writer.add_result(read_row(text).line); });
  for (std::size_t run = 0; run < runs; ++run)
    if (const auto kind = folder_.kind(run); kind && *kind != RowKind::result)
      folder_.read(run, [&](const std::string& text) { writer.add_failed(text); });
  writer.finish(summarize(facts_));
}

namespace {

plan::Effort effort_of(bool exhaustive) { return exhaustive ? plan::Effort::exhaustive : plan::Effort::normal; }

/// The units of a request as work to split; the question is written down for a folder's `shards.json`.
ShardedWork sharded_plan(const plan::Request& request, bool exhaustive, const plan::Search& search,
                         const std::string& program, const std::filesystem::path& folder) {
  ShardedWork work{.command = kPlanShards, .program = program, .name = request.trace.model, .parts = {}, .seeds = {}};
  work.asked = {{"request", plan::request_document(request, folder)},
                {"as_read", request.content},
                {"trace", request.trace_choice},
                {"files", request.file_hashes},
                {"exhaustive", exhaustive}};
  const std::uint64_t question = fnv1a(work.asked.dump());
  for (std::size_t unit = 0; unit < search.size(); ++unit)
    work.parts.push_back({search.label(unit), fmt::format("{:016x} {}", question, unit)});
  return work;
}

/// The outcome that a row holds.
plan::UnitOutcome outcome_of(const ShardedWork& work, const plan::Search& search, std::size_t unit,
                             std::string_view row) {
  return plan::read_outcome(held_by_row(work, unit, row), search.member_count(unit));
}

/// The findings of the shards of a folder so far.
class FoundUnits {
 public:
  FoundUnits(const ShardedWork& work, const std::filesystem::path& folder, plan::Search& search)
      : work_(work), folder_(folder), search_(search), hash_(fnv1a(work_text(work))) {
    for (std::size_t unit = 0; unit < work.size(); ++unit) missing_.emplace(work.key(unit), unit);
  }

  /// Lets the search take what is found of the rounds before that of `unit`.
  void take_before(std::size_t unit) {
    for (const ShardFile& file : shard_files(folder_)) {
      std::uint64_t& end = ends_[file.path];
      end = read_shard_file(
          file.path, work_, hash_, [&](const ShardRow& row, std::uint64_t offset) { keep(row, file.path, offset); }, {},
          end);
    }
    const auto round = found_.lower_bound(unit / plan::Search::kUnitsPerRound * plan::Search::kUnitsPerRound);
    for (auto one = found_.begin(); one != round; ++one) search_.take(one->first, one->second);
    found_.erase(found_.begin(), round);
  }

 private:
  void keep(const ShardRow& row, const std::filesystem::path& file, std::uint64_t offset) {
    const auto unit = missing_.find(row.key);
    if (unit == missing_.end() || row.kind != RowKind::result) return;
    read_row_at(file, offset, work_.label(unit->second),
                [&] { found_.emplace(unit->second, outcome_of(work_, search_, unit->second, row.text)); });
    missing_.erase(unit);
  }

  const ShardedWork& work_;
  const std::filesystem::path& folder_;
  plan::Search& search_;
  std::uint64_t hash_;
  std::map<std::filesystem::path, std::uint64_t> ends_;     ///< of what was read, in bytes
  std::unordered_map<std::uint64_t, std::size_t> missing_;  ///< units that nothing is known of, by key
  std::map<std::size_t, plan::UnitOutcome> found_;          ///< what the search has not taken yet
};

}  // namespace

ShardOutcome run_plan_shard(const plan::Request& request, bool exhaustive, const std::string& program,
                            const Shard& shard, const std::filesystem::path& folder, const ShardOptions& options) {
  if (!request.start.empty() && !request.content.contains("start"))
    throw ConfigError("--shard: the deadline is a time; say with --start from when it counts, the same for all shards");
  plan::Search search(request, {.effort = effort_of(exhaustive)});
  const ShardedWork work = sharded_plan(request, exhaustive, search, program, folder);
  FoundUnits found(work, folder, search);
  return run_shard(work, shard, folder,
                   {.work =
                        [&](std::size_t unit) {
                          found.take_before(unit);
                          return row_holding(work, unit, plan::outcome_json(search.evaluate(unit)));
                        }},
                   options);
}

MergedPlan merge_plan(const ShardFolder& folder, const std::filesystem::path& path, const std::string& program,
                      int jobs) {
  const ShardedWork& work = folder.work();
  const std::string file = (path / "shards.json").string();
  JsonObject asked(JsonNode::wrap(work.asked, file, path));
  const JsonNode document = asked.required("request");
  MergedPlan merged{plan::read_request(JsonNode::wrap(document.value(), file, path), ""), {}};
  merged.request.content = asked.required("as_read").value();
  merged.request.trace_choice = asked.required("trace").as_string();
  const bool exhaustive = asked.required("exhaustive").as_bool();
  plan::PlanOptions options{.jobs = jobs, .effort = effort_of(exhaustive)};
  const plan::Search search(merged.request, {.effort = options.effort});
  require_same_work(sharded_plan(merged.request, exhaustive, search, program, path), work, path.string());
  options.known_outcome = [&](std::size_t unit) -> std::optional<plan::UnitOutcome> {
    if (folder.kind(unit) != RowKind::result) return {};
    std::optional<plan::UnitOutcome> outcome;
    folder.read(unit, [&](const std::string& text) { outcome = outcome_of(work, search, unit, text); });
    return outcome;
  };
  merged.plan = plan::make_plan(merged.request, options);
  return merged;
}

namespace {

using LearnJson = Json;

LearnJson asked_of(const LearnQuestion& question, const std::filesystem::path& folder) {
  const plan::LearnOptions& how = question.options;
  LearnJson set = LearnJson::array();
  for (const JsonOverride& one : question.overrides) set.push_back({one.pointer, one.value});
  return {{"scenario", plan::path_from(folder, question.scenario.string())},
          {"set", std::move(set)},
          {"episodes", how.episodes},
          {"learners", how.learners},
          {"first_seed", how.first_seed},
          {"usd_per_hour_waited", how.usd_per_hour_waited},
          {"held_out", how.held_out}};
}

LearnQuestion question_of(const JsonNode& node, const std::filesystem::path& folder) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  JsonObject in(node);
  LearnQuestion question;
  question.scenario = folder / in.required("scenario").as_string();
  for (const JsonNode& one : in.required("set").as_array()) {
    const std::vector<JsonNode> pair = one.as_array();
    if (pair.size() != 2) one.expected("a JSON pointer and a value");
    question.overrides.push_back({pair[0].as_string(), pair[1].as_string()});
  }
  plan::LearnOptions& how = question.options;
  how.episodes = static_cast<int>(in.required("episodes").as_integer(1, kMost));
  how.learners = static_cast<int>(in.required("learners").as_integer(1, kMost));
  how.first_seed = in.required("first_seed").as_seed();
  how.usd_per_hour_waited = in.required("usd_per_hour_waited").as_number(0, 1e9);
  how.held_out = static_cast<int>(in.required("held_out").as_integer(1, kMost));
  in.finish();
  return question;
}

ShardedWork sharded_learning(const LearnQuestion& question, const sim::Scenario& scenario, const std::string& program,
                             const std::filesystem::path& folder) {
  ShardedWork work{.command = kLearnShards,
                   .program = program,
                   .name = question.scenario.filename().string(),
                   .parts = {},
                   .seeds = {}};
  work.asked = asked_of(question, folder);
  for (int learner = 0; learner < question.options.learners; ++learner)
    work.parts.push_back({fmt::format("learner {} of {}", learner + 1, question.options.learners),
                          fmt::format("{} {}", scenario.hash_without_seed, learner)});
  return work;
}

}  // namespace

ShardOutcome run_learn_shard(const LearnQuestion& question, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, const ShardOptions& options) {
  const sim::Scenario scenario = plan::load_scenario_or_plan(question.scenario, question.overrides);
  const ShardedWork work = sharded_learning(question, scenario, program, folder);
  return run_shard(work, shard, folder,
                   {.work =
                        [&](std::size_t learner) {
                          const auto lesson = plan::learn_lesson(scenario, question.options, static_cast<int>(learner));
                          return row_holding(work, learner, Json::parse(plan::lesson_json(lesson)));
                        }},
                   options);
}

MergedTable merge_table(const ShardFolder& folder, const std::filesystem::path& path, const std::string& program) {
  const std::string file = (path / "shards.json").string();
  const LearnQuestion question = question_of(JsonNode::wrap(folder.work().asked, file, path), path);
  const sim::Scenario scenario = plan::load_scenario_or_plan(question.scenario, question.overrides);
  require_same_work(sharded_learning(question, scenario, program, path), folder.work(), path.string());
  std::vector<plan::Lesson> lessons;
  for (std::size_t learner = 0; learner < folder.work().size(); ++learner)
    folder.read(learner, [&](const std::string& text) {
      lessons.push_back(plan::read_lesson(held_by_row(folder.work(), learner, text)));
    });
  return {question.options, plan::table_of(scenario, question.options, lessons)};
}

}  // namespace ganymede::studies
