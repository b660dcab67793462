#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/command.hpp"
#include "cli/merged.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "report/runs.hpp"
#include "studies/run_study.hpp"
#include "studies/shard_folder.hpp"
#include "studies/study_shards.hpp"
#include "studies/validation.hpp"

namespace ganymede::cli {
namespace {

struct SweepOptions {
  std::string study;
  std::string seed;
  std::string shard;
  std::vector<std::string> assignments;
  MeasuredOptions measured;
};

studies::Study load_sweep(const SweepOptions& options) {
  auto overrides = parse_assignments(options.assignments);
  for (JsonOverride& override : measured_overrides(options.measured)) overrides.push_back(std::move(override));
  if (options.measured.batch > 0)
    overrides.push_back({"/workload/batch_per_gpu", std::to_string(options.measured.batch)});
  if (!options.seed.empty()) overrides.push_back({"/seeds", fmt::format("[{}]", options.seed)});
  return studies::load_study(options.study, overrides);
}

void run_shard_of(const SweepOptions& options, Shared& shared) {
  require_folder(shared);
  const studies::Shard shard = read_shard(options.shard, std::getenv);
  const studies::Study study = load_sweep(options);
  report_shard(shared, shard,
               studies::run_study_shard(study, GANYMEDE_VERSION, shard, shared.output, shard_options(shared, "runs")));
}

/// Throws BudgetExceeded if the results, which are held until the last one is there, would take more memory than is
/// allowed. Of a study whose runs hardly tell anything one takes 13 kB, and 33 kB where rows of CSV are made of it
/// (first-look.json with 1,000 seeds, /usr/bin/time -f %M).
void check_results(const SweepOptions& options, const Shared& shared, std::size_t runs) {
  check_memory(Bytes{(shared.format == "csv" ? 33e3 : 13e3) * static_cast<double>(runs)},
               fmt::format("{}: /seeds: the results of {} runs, without --shard,", options.study,
                           with_thousands(static_cast<std::int64_t>(runs))));
}

void run_sweep(const SweepOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.study);
  const studies::Study study = load_sweep(options);
  check_results(options, shared, study.runs.size());
  // With --output every result is kept in a journal, from which an interrupted sweep continues.
  const std::filesystem::path journal = shared.output.empty() ? "" : shared.output + ".partial";
  const studies::StudyOutcome outcome =
      studies::run_study(study, jobs(shared), progress_bar(shared, study.runs.size(), "runs"), journal,
                         [&](const std::string& what) { remark(shared, what); });
  studies::require_some_result(outcome, study.runs.size());
  const auto sweep = Json::parse(shared.format == "table" ? outcome.brief
                                 : shared.format == "csv" ? outcome.json
                                                          : "null");
  emit(shared, shared.format == "json" ? outcome.json
               : shared.format == "csv"
                   ? report::sweep_csv(sweep)
                   : highlighted(shared, report::wrap_prose(fmt::format("{}{}{}", study.name,
                                                                        study.about.empty() ? "" : ": ", study.about),
                                                            result_width(shared)) +
                                             "\n\n" + (report::sweep_text(sweep, result_width(shared)))));
  if (!journal.empty()) studies::remove_journal(journal);
  studies::require_no_failure(outcome, study.runs.size());
}

void declare_sweep(Parser command, Shared& shared) {
  auto options = std::make_shared<SweepOptions>();
  command.add_option("study", options->study, "a ganymede.study/1 file").required();
  command.add_option("--seed", options->seed, "use this seed instead of the study's", not_empty);
  add_measured(command, options->measured);
  add_measured_batch(command, options->measured);
  add_set(command, options->assignments);
  add_shard(command, options->shard);
  add_jobs(command, shared);
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([options, &shared] {
    if (options->shard.empty())
      run_sweep(*options, shared);
    else
      run_shard_of(*options, shared);
  });
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "platforms x GPU counts x schemes x policies x seeds, distributions and ranking",
          .examples =
              "  ganymede sweep studies/first-look.json\n"
              "  ganymede sweep studies/first-look.json --set /workload/trace=trace.json --format csv -o runs.csv\n"
              "  ganymede example study > study.json && ganymede sweep study.json --jobs 2\n"
              "  ganymede sweep study.json --shard auto -o shards        in each job of an array (docs/shards.md)\n",
          .about =
              "Simulates a study: platforms x GPU counts x schemes x policies x seeds. For several seeds it prints\n"
              "the distribution of time and cost, for several policies their ranking and whether it exceeds the\n"
              "noise. With -o, an interrupted sweep keeps what is done in FILE.partial, and the same command\n"
              "continues from there. With --shard, many processes share the work and the folder that -o names.",
          .declare = declare_sweep};
}

// ganymede merge: the rows of shards as the result of one machine.

namespace {

struct MergeOptions {
  std::string folder;
  bool status = false, partial = false;
};

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
  const studies::ShardStatus status(folder);
  if (options.status) {
    emit(shared, highlighted(shared, status.text(remark_width())));
    return false;
  }
  if (status.is_empty()) throw Infeasible(options.folder + ": no run is done yet");
  if (status.missing() > 0 && !options.partial)
    throw Infeasible(options.folder + ": " + status.missing_text() +
                     (folder.work().command == studies::kPlanShards ? "; --partial does them here"
                                                                    : "; --partial merges the others"));
  if (status.missing() > 0) remark(shared, status.missing_text());
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
  std::vector<documents::ValidatedStudy> studies;
  for (std::size_t i = 0; i < folder.work().size(); ++i)
    if (folder.kind(i))
      folder.read(i, [&](const std::string& text) {
        studies.push_back(documents::validated_study_in(studies::held_by_row(folder.work(), i, text).value()));
      });
  const auto result = studies::validation_result(studies);
  emit(shared, documents::validation_json(result).dump(1) + "\n");
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
