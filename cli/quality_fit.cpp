// ganymede quality fit: a model of quality from recorded trainings.

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/quality_logs.hpp"
#include "common/errors.hpp"

namespace ganymede::cli {
namespace {

struct FitOptions {
  std::vector<std::string> files, sources;
  traces::QualityLogOptions log;
  traces::QualityLog given;
};

void run_fit(const FitOptions& options, Shared& shared) {
  check_output(shared);
  std::vector<calibration::RecordedRun> runs;
  for (const std::string& file : options.files) {
    keep_input(shared, file);
    QualityLogs logs = read_recorded_runs(file, options.log, options.given);
    for (const std::string& note : logs.notes) remark(shared, note);
    for (calibration::RecordedRun& run : logs.runs) runs.push_back(std::move(run));
  }
  try {
    calibration::QualityModel model = calibration::fit_quality(runs);
    model.sources = options.sources.empty() ? options.files : options.sources;
    emit(shared, calibration::write_quality_model(model));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", options.files.front(), error.what()));
  }
}

void declare_fit(Parser command, Shared& shared) {
  auto options = std::make_shared<FitOptions>();
  command.add_option("FILE", options->files, "logs of trainings: CSV, metric-*.jsonl, StudioGAN's log, event files")
      .required()
      .check(suggest("@files"));
  command.add_option("--source", options->sources, "where the trainings come from, for the model's \"sources\"");
  add_quality_log_options(command, options->log);
  add_quality_facts(command, options->given);
  add_output(command, shared);
  command.callback([options, &shared] { run_fit(*options, shared); });
}

}  // namespace

Command quality_fit_command() {
  return {.name = "fit",
          .summary = "fit a model of FID against images to recorded trainings",
          .examples =
              "  ganymede quality fit points.csv --runs runs.csv -o curve.json\n"
              "  ganymede quality fit a/metric-fid50k_full.jsonl b/metric-fid50k_full.jsonl --dataset ffhq -o "
              "curve.json\n",
          .about =
              "The model has a curve for each training, effects of its dataset, networks and batch, a spread\n"
              "between trainings, and a hazard that they diverge. `quality forecast` and scenarios take it.",
          .declare = declare_fit};
}

}  // namespace ganymede::cli
