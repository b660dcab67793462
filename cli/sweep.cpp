#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.hpp"
#include "cli/measured_options.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "report/runs.hpp"
#include "studies/study.hpp"

namespace ganymede::cli {
namespace {

struct SweepOptions {
  std::string study;
  std::string seed;
  std::vector<std::string> assignments;
  MeasuredOptions measured;
};

void run_sweep(const SweepOptions& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.study);
  auto overrides = parse_assignments(options.assignments);
  for (JsonOverride& override : measured_overrides(options.measured)) overrides.push_back(std::move(override));
  if (options.measured.batch > 0)
    overrides.push_back({"/workload/batch_per_gpu", std::to_string(options.measured.batch)});
  if (!options.seed.empty()) overrides.push_back({"/seeds", fmt::format("[{}]", options.seed)});
  const studies::Study study = studies::load_study(options.study, overrides);
  // With --output every result is kept in a journal, from which an interrupted sweep continues.
  const std::filesystem::path journal = shared.output.empty() ? "" : shared.output + ".partial";
  if (!journal.empty() && std::filesystem::exists(journal))
    remark(shared, fmt::format("going on from {}", journal.string()));
  const studies::StudyOutcome outcome =
      studies::run_study(study, jobs(shared), progress_bar(shared, study.runs.size(), "runs"), journal,
                         {[](const nlohmann::json& run) { (void)(report::run_text(run) + report::run_csv(run)); },
                          [&](const std::string& what) { remark(shared, what); }});
  if (outcome.failed + outcome.endless == study.runs.size()) {
    if (outcome.failed > 0) throw Failure("every run failed; the first: " + outcome.first_reason);
    throw Infeasible("no run ever finishes; the first: " + outcome.first_reason);
  }
  const auto sweep = nlohmann::json::parse(shared.format == "table" ? outcome.brief
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
  if (outcome.failed > 0)
    throw Failure(
        fmt::format("{} of {} runs failed; the first: {}", outcome.failed, study.runs.size(), outcome.first_reason));
}

void declare_sweep(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<SweepOptions>();
  command.add_option("study", options->study, "a ganymede.study/1 file")->required();
  command.add_option("--seed", options->seed, "use this seed instead of the study's");
  add_measured(command, options->measured);
  add_measured_batch(command, options->measured);
  add_set(command, options->assignments);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_sweep(*options, shared); });
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "platforms x GPU counts x schemes x policies x seeds, distributions and ranking",
          .examples =
              "  ganymede sweep studies/first-look.json\n"
              "  ganymede sweep studies/first-look.json --set /workload/trace=trace.json --format csv -o runs.csv\n"
              "  ganymede example study > study.json && ganymede sweep study.json --jobs 2\n",
          .about =
              "Simulates a study: platforms x GPU counts x schemes x policies x seeds. For several seeds it prints\n"
              "the distribution of time and cost, for several policies their ranking and whether it exceeds the\n"
              "noise. With -o, an interrupted sweep keeps what is done in FILE.partial, and the same command\n"
              "continues from there.",
          .declare = declare_sweep};
}

}  // namespace ganymede::cli
