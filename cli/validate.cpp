#include <fmt/format.h>

#include <cstdlib>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/text.hpp"
#include "report/validations.hpp"
#include "studies/validation.hpp"

namespace ganymede::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> studies, rehearsed;
  std::string shard;
  bool replay = false;
};

void run_validate_shard(const ValidateOptions& options, Shared& shared) {
  require_folder(shared);
  const studies::Shard shard = read_shard(options.shard, std::getenv);
  report_shard(shared, shard,
               studies::run_validation_shard(studies::read_asked(options.studies), GANYMEDE_VERSION, shard,
                                             shared.output, shard_options(shared, "studies")));
}

void run_validate(const ValidateOptions& options, Shared& shared) {
  check_output(shared);
  for (const std::string& name : options.studies)
    if (studies::embedded_validation(name).empty()) keep_input(shared, name);
  for (const std::string& name : options.rehearsed) keep_input(shared, name);
  auto [names, documents, studies] = studies::read_asked(options.studies);
  const studies::RehearsedLinks rehearsed = studies::read_rehearsals(options.rehearsed);
  for (studies::Validation& study : studies) use_rehearsals(rehearsed, study);
  std::vector<documents::ValidatedStudy> results(studies.size());
  const auto outcomes = run_children(
      studies.size(), jobs(shared),
      [&, &asked = studies](std::size_t i) {
        return documents::validated_study_text(studies::run_validation(std::move(asked[i]), options.replay));
      },
      progress_bar(shared, studies.size(), "studies"));
  for (std::size_t i = 0; i < studies.size(); ++i) {
    rethrow(outcomes[i], outcomes[i].text.starts_with(names[i] + ": ") ? "" : names[i] + ": ");
    results[i] = documents::validated_study_in(Json::parse(outcomes[i].text));
  }
  const auto result = studies::validation_result(results, rehearsed);
  emit(shared, shared.format == "json" ? documents::validation_json(result).dump(1) + "\n"
               : shared.format == "csv"
                   ? report::validation_csv(result)
                   : report::validation_text(result, !options.studies.empty(), result_width(shared)));
  if (!studies::promises_kept(result)) shared.exit_code = ExitCode::goal_missed;
  if (!studies::claims_as_expected(result)) shared.exit_code = ExitCode::failure;
}

void declare_validate(Parser command, Shared& shared) {
  auto options = std::make_shared<ValidateOptions>();
  command.add_option("study", options->studies, fmt::format("{}, or a file", list_of(studies::validation_names())),
                     suggest("@studies @files"));
  command
      .add_option(
          "--rehearsed", options->rehearsed,
          "studies that `rehearse --output` wrote: intervals of their kind of network get as wide as these were "
          "off",
          suggest("@files"))
      .delimiter(',')
      .type_name("FILE,...");
  command.add_flag("--replay", options->replay,
                   "predict each training by `simulate` too, on the catalog as it ships, and compare the two");
  add_result(command, shared, {"table", "json", "csv"});
  add_jobs(command, shared);
  add_shard(command, options->shard);
  command.callback([options, &shared] {
    if (!options->shard.empty() && !options->rehearsed.empty())
      throw ConfigError("--rehearsed: expected no --shard beside it");
    if (!options->shard.empty() && options->replay) throw ConfigError("--replay: expected no --shard beside it");
    if (options->shard.empty())
      run_validate(*options, shared);
    else
      run_validate_shard(*options, shared);
  });
}

}  // namespace

Command validate_command() {
  return {
      .name = "validate",
      .summary = "predictions against published measurements, with their baselines and errors",
      .examples =
          "  ganymede validate\n"
          "  ganymede validate stylegan2_ada_v100\n"
          "  ganymede validate my-study.json --format json -o validation.json\n"
          "  ganymede validate --rehearsed monday.json,tuesday.json\n",
      .about =
          "Without a name, every study that comes with the program is predicted. Cells that are marked as\n"
          "fitted calibrate a study; all others are predicted. The studies that come with the program were\n"
          "known while the model was made: on machines that were held out it was about three times as far off\n"
          "(docs/model.md). Exit code 4 if a study misses an accuracy that it promises, 1 if a claim does not come\n"
          "out as its study expects.",
      .declare = declare_validate};
}

}  // namespace ganymede::cli
