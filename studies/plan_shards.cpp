#include "studies/plan_shards.hpp"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::studies {
namespace {

using PlanJson = Json;

/// The units of a request as work to split; the question is written down for a folder's `shards.json`.
ShardedWork sharded_plan(const plan::Request& request, bool exhaustive, const plan::PlanUnits& units,
                         const std::string& program, const std::filesystem::path& folder) {
  ShardedWork work{.command = kPlanShards, .program = program, .name = request.trace.model, .parts = {}, .seeds = {}};
  work.asked = {{"request", plan::request_document(request, folder)},
                {"as_read", request.content},
                {"trace", request.trace_choice},
                {"files", request.file_hashes},
                {"exhaustive", exhaustive}};
  const std::uint64_t question = fnv1a(work.asked.dump());
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    work.parts.push_back({units.label(unit), fmt::format("{:016x} {}", question, unit)});
  return work;
}

/// The outcome that a row holds.
PlanJson checked(const plan::PlanUnits& units, std::size_t unit, const std::string& text, const std::string& label) {
  const JsonNode outcome = JsonNode::parse(text, "the row of " + label);
  units.check(unit, outcome);
  return outcome.value();
}

/// What the shards of a folder have found so far.
class FoundUnits {
 public:
  FoundUnits(const ShardedWork& work, const std::filesystem::path& folder, plan::PlanUnits& units)
      : work_(work), folder_(folder), units_(units), hash_(fnv1a(work_text(work))) {
    for (std::size_t unit = 0; unit < work.size(); ++unit) waiting_.emplace(work.key(unit), unit);
  }

  /// Reads the rows that are new since the last call.
  void read() {
    for (const ShardFile& file : shard_files(folder_)) {
      std::uint64_t& end = ends_[file.path];
      end = read_shard_file(
          file.path, work_, hash_, [this](const ShardRow& row, std::uint64_t /*offset*/) { take(row); }, {}, end);
    }
  }

 private:
  void take(const ShardRow& row) {
    const auto unit = waiting_.find(row.key);
    if (unit == waiting_.end() || row.kind != RowKind::result) return;
    units_.learn(unit->second, checked(units_, unit->second, std::string(row.text), work_.label(unit->second)));
    waiting_.erase(unit);
  }

  const ShardedWork& work_;
  const std::filesystem::path& folder_;
  plan::PlanUnits& units_;
  std::uint64_t hash_;
  std::map<std::filesystem::path, std::uint64_t> ends_;     ///< of what was read, in bytes
  std::unordered_map<std::uint64_t, std::size_t> waiting_;  ///< units that nothing is known of, by key
};

}  // namespace

ShardOutcome run_plan_shard(const plan::Request& request, bool exhaustive, const std::string& program,
                            const Shard& shard, const std::filesystem::path& folder, const ShardOptions& options) {
  if (!request.start.empty() && !request.content.contains("start"))
    throw ConfigError("--shard: the deadline is a time; say with --start from when it counts, the same for all shards");
  plan::PlanUnits units(request, {.exhaustive = exhaustive});
  const ShardedWork work = sharded_plan(request, exhaustive, units, program, folder);
  FoundUnits found(work, folder, units);
  return run_shard(work, shard, folder,
                   {.work =
                        [&](std::size_t unit) {
                          found.read();
                          return units.evaluate(unit).dump();
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
  plan::PlanOptions options{.jobs = jobs, .exhaustive = asked.required("exhaustive").as_bool()};
  const plan::PlanUnits units(merged.request, {.exhaustive = options.exhaustive});
  require_same_work(sharded_plan(merged.request, options.exhaustive, units, program, path), work, path.string());
  options.known_outcome = [&](std::size_t unit) {
    if (folder.kind(unit) != RowKind::result) return PlanJson();
    return checked(units, unit, folder.text(unit), work.label(unit));
  };
  merged.plan = plan::make_plan(merged.request, options);
  return merged;
}

}  // namespace ganymede::studies
