// ganymede merge: the rows of shards as the result of one machine.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/command.hpp"
#include "cli/learn_report.hpp"
#include "cli/plan_goals.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "report/table.hpp"
#include "studies/learn_shards.hpp"
#include "studies/plan_shards.hpp"
#include "studies/study_shards.hpp"
#include "studies/validation.hpp"

namespace ganymede::cli {
namespace {

/// Entries that a message lists before it says how many more there are.
constexpr std::size_t kListed = 10;

struct MergeOptions {
  std::string folder;
  bool status = false, partial = false;
};

/// Runs of one shard.
struct ShardCount {
  std::size_t runs = 0, failed = 0, missing = 0;
};

/// What a folder of shards lacks.
struct Missing {
  std::size_t runs = 0;
  std::vector<std::string> labels;             ///< of the first missing runs
  std::map<std::uint64_t, ShardCount> shards;  ///< by index, of as many shards as most files were made with
};

Missing missing_of(const studies::ShardFolder& folder) {
  Missing missing;
  const std::uint64_t count = folder.shards();
  for (std::size_t run = 0; run < folder.work().size(); ++run) {
    ShardCount ignored;
    ShardCount& shard = count == 0 ? ignored : missing.shards[folder.work().shard_of(run, count).index];
    ++shard.runs;
    const auto kind = folder.kind(run);
    if (kind == studies::RowKind::failure) ++shard.failed;
    if (kind) continue;
    ++shard.missing;
    ++missing.runs;
    if (missing.labels.size() < kListed) missing.labels.push_back(folder.work().label(run));
  }
  return missing;
}

std::string share_done(std::size_t part, std::size_t whole) {
  return fmt::format("{:.1f} %", whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// The shards that lack runs, as flags: "--shard 3/64, 17/64 and 2 more".
std::string shards_to_do(const Missing& missing, std::uint64_t count) {
  std::string out;
  std::size_t listed = 0, more = 0;
  for (const auto& [index, shard] : missing.shards) {
    if (shard.missing == 0) continue;
    if (listed++ < kListed)
      out += fmt::format("{}{}/{}", out.empty() ? "--shard " : ", ", index, count);
    else
      ++more;
  }
  return more == 0 ? out : fmt::format("{} and {} more", out, more);
}

std::string missing_text(const studies::ShardFolder& folder, const Missing& missing) {
  std::string text =
      fmt::format("{} of {} runs are missing: {}", missing.runs, folder.work().size(), fmt::join(missing.labels, "; "));
  if (missing.runs > missing.labels.size()) text += fmt::format("; and {} more", missing.runs - missing.labels.size());
  if (folder.shards() > 0) text += fmt::format(" ({})", shards_to_do(missing, folder.shards()));
  return text;
}

std::string status_text(const studies::ShardFolder& folder, const Missing& missing) {
  const studies::ShardedWork& work = folder.work();
  const std::size_t done = work.size() - missing.runs;
  std::size_t failed = 0, whole = 0;
  report::Table table({"shard", ">runs", ">done", ">failed", ">missing"});
  std::size_t listed = 0, lacking = 0;
  for (const auto& [index, shard] : missing.shards) {
    failed += shard.failed;
    whole += shard.missing == 0 ? 1 : 0;
    if (shard.missing == 0 || ++lacking > 2 * kListed) continue;
    ++listed;
    table.add({fmt::format("{}/{}", index, folder.shards()), std::to_string(shard.runs),
               std::to_string(shard.runs - shard.missing), std::to_string(shard.failed),
               std::to_string(shard.missing)});
  }
  std::string text =
      fmt::format("{} ({}, version {}): {} of {} runs are done ({}), {} failed, {} missing\n", work.name, work.command,
                  work.program, done, work.size(), share_done(done, work.size()), failed, missing.runs);
  if (folder.shards() == 0) return text + "no shard has begun\n";
  text += fmt::format("{} of {} shards are complete; rows are in {} files\n",
                      whole + (folder.shards() - missing.shards.size()), folder.shards(), folder.files().size());
  if (listed > 0) text += "\n" + table.text(remark_width());
  if (lacking > listed) text += fmt::format("… and {} more shards\n", lacking - listed);
  return text;
}

/// Writes to --output or standard output, piece by piece.
void emit_pieces(const Shared& shared, const std::function<void(const ContentSink&)>& produce) {
  if (!shared.output.empty()) return write_file(shared.output, produce);
  produce([](std::string_view piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size())
      throw Failure("standard output cannot be written");
  });
  if (std::fflush(stdout) != 0) throw Failure("standard output cannot be written");
}

/// Throws ConfigError if --output is one of the files that are merged.
void keep_shards(const Shared& shared, const studies::ShardFolder& folder, const std::string& where) {
  keep_input(shared, (std::filesystem::path(where) / "shards.json").string());
  for (const studies::ShardFile& file : folder.files()) keep_input(shared, file.path.string());
}

/// Prints the status if that is all that was asked for, and returns false. Throws Infeasible if runs are missing that
/// may not be.
bool may_merge(const studies::ShardFolder& folder, const MergeOptions& options, const Shared& shared) {
  const Missing missing = missing_of(folder);
  if (options.status) {
    emit(shared, highlighted(shared, status_text(folder, missing)));
    return false;
  }
  if (missing.runs > 0 && missing.runs == folder.work().size())
    throw Infeasible(options.folder + ": no run is done yet");
  if (missing.runs > 0 && !options.partial)
    throw Infeasible(options.folder + ": " + missing_text(folder, missing) +
                     (folder.work().command == studies::kPlanShards ? "; --partial does them here"
                                                                    : "; --partial merges the others"));
  if (missing.runs > 0) remark(shared, missing_text(folder, missing));
  keep_shards(shared, folder, options.folder);
  return true;
}

void merge_sweep(studies::ShardFolder& folder, const MergeOptions& options, const Shared& shared) {
  const studies::MergedStudy merged(folder, [&](const std::string& what) { remark(shared, what); });
  if (!may_merge(folder, options, shared)) return;
  const studies::StudyOutcome& outcome = merged.outcome();
  studies::require_some_result(outcome, merged.runs());
  emit_pieces(shared, [&](const ContentSink& sink) { merged.write(sink); });
  studies::require_no_failure(outcome, merged.runs());
}

void merge_validation(studies::ShardFolder& folder, const MergeOptions& options, Shared& shared) {
  folder.scan({}, [&](const std::string& what) { remark(shared, what); });
  if (!may_merge(folder, options, shared)) return;
  std::vector<OrderedJson> studies;
  for (std::size_t i = 0; i < folder.work().size(); ++i)
    if (folder.kind(i)) studies.push_back(OrderedJson::parse(folder.text(i)));
  const auto result = studies::validation_result(studies);
  emit(shared, result.dump(1) + "\n");
  if (!studies::promises_kept(result)) shared.exit_code = ExitCode::goal_missed;
}

void merge_plan(studies::ShardFolder& folder, const MergeOptions& options, Shared& shared) {
  folder.scan({}, [&](const std::string& what) { remark(shared, what); });
  if (!may_merge(folder, options, shared)) return;
  const studies::MergedPlan merged = studies::merge_plan(folder, options.folder, GANYMEDE_VERSION, jobs(shared));
  const auto parent = std::filesystem::path(shared.output).parent_path();
  emit(shared, plan::plan_json(merged.request, merged.plan, parent.empty() ? "." : parent));
  report_goals(merged.request, merged.plan, shared);
}

void merge_table(studies::ShardFolder& folder, const MergeOptions& options, const Shared& shared) {
  folder.scan({}, [&](const std::string& what) { remark(shared, what); });
  if (options.partial && !options.status)
    throw ConfigError("--partial: found with the shards of `learn`; a table is made by all its learners");
  if (!may_merge(folder, options, shared)) return;
  const studies::MergedTable merged = studies::merge_table(folder, options.folder, GANYMEDE_VERSION);
  emit(shared, merged.table.json);
  if (!shared.quiet) say(judgement_text(merged.table, merged.options));
}

void run_merge(const MergeOptions& options, Shared& shared) {
  check_output(shared);
  studies::ShardFolder folder(options.folder);
  const std::string& command = folder.work().command;
  if (command == studies::kSweepShards) return merge_sweep(folder, options, shared);
  if (command == studies::kValidateShards) return merge_validation(folder, options, shared);
  if (command == studies::kPlanShards) return merge_plan(folder, options, shared);
  if (command == studies::kLearnShards) return merge_table(folder, options, shared);
  throw ConfigError(fmt::format("{}: holds shards of `{}`, expected {}, {}, {} or {}", options.folder, command,
                                studies::kSweepShards, studies::kValidateShards, studies::kPlanShards,
                                studies::kLearnShards));
}

void declare_merge(Parser command, Shared& shared) {
  auto options = std::make_shared<MergeOptions>();
  command.add_option("folder", options->folder, "the folder that --shard has written").required();
  command.add_flag("--status", options->status, "only say how far all shards are");
  command.add_flag("--partial", options->partial,
                   "merge what is there, though runs are missing; of a plan: do what is missing");
  add_jobs(command, shared);
  add_output(command, shared);
  command.callback([options, &shared] { run_merge(*options, shared); });
}

}  // namespace

Command merge_command() {
  return {.name = "merge",
          .summary = "the rows of shards as one result: the bytes of one machine's run",
          .examples =
              "  ganymede sweep studies/first-look.json --shard 0/2 -o shards\n"
              "  ganymede sweep studies/first-look.json --shard 1/2 -o shards      on any machine, at any time\n"
              "  ganymede merge shards --status\n"
              "  ganymede merge shards -o result.json\n",
          .about =
              "Puts together what --shard of sweep, validate, plan or learn has written to a folder. The result is\n"
              "JSON, with the same bytes as --format json of one process that does it all. Exit code 3: runs are\n"
              "missing; they are named.",
          .declare = declare_merge};
}

}  // namespace ganymede::cli
