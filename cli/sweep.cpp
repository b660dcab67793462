#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/command.hpp"
#include "cli/measured_options.hpp"
#include "cli/shard_options.hpp"
#include "cli/terminal.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "report/runs.hpp"
#include "studies/run_study.hpp"
#include "studies/study_shards.hpp"

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

void run_sweep(const SweepOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.study);
  const studies::Study study = load_sweep(options);
  // With --output every result is kept in a journal, from which an interrupted sweep continues.
  const std::filesystem::path journal = shared.output.empty() ? "" : shared.output + ".partial";
  if (!journal.empty() && std::filesystem::exists(journal))
    remark(shared, fmt::format("going on from {}", journal.string()));
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
  if (!journal.empty()) std::filesystem::remove(journal);
  studies::require_no_failure(outcome, study.runs.size());
}

void declare_sweep(Parser command, Shared& shared) {
  auto options = std::make_shared<SweepOptions>();
  command.add_option("study", options->study, "a ganymede.study/1 file").required();
  command.add_option("--seed", options->seed, "use this seed instead of the study's").check(not_empty);
  add_measured(command, options->measured);
  add_measured_batch(command, options->measured);
  add_set(command, options->assignments);
  add_shard(command, options->shard);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
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

}  // namespace ganymede::cli
