#include "studies/plan_shards.hpp"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "plan/search.hpp"

namespace ganymede::studies {
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
plan::UnitOutcome outcome_of(const plan::Search& search, std::size_t unit, std::string_view row,
                             const std::string& label) {
  return plan::read_outcome(JsonNode::parse(row, "the row of " + label), search.member_count(unit));
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
          file.path, work_, hash_, [this](const ShardRow& row, std::uint64_t /*offset*/) { keep(row); }, {}, end);
    }
    const auto round = found_.lower_bound(unit / plan::Search::kUnitsPerRound * plan::Search::kUnitsPerRound);
    for (auto one = found_.begin(); one != round; ++one) search_.take(one->first, one->second);
    found_.erase(found_.begin(), round);
  }

 private:
  void keep(const ShardRow& row) {
    const auto unit = missing_.find(row.key);
    if (unit == missing_.end() || row.kind != RowKind::result) return;
    found_.emplace(unit->second, outcome_of(search_, unit->second, row.text, work_.label(unit->second)));
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
                          return plan::outcome_json(search.evaluate(unit)).dump();
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
    return outcome_of(search, unit, folder.text(unit), work.label(unit));
  };
  merged.plan = plan::make_plan(merged.request, options);
  return merged;
}

}  // namespace ganymede::studies
