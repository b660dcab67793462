// ganymede quality forecast: images until an FID, and the chance to get there.

#include <fmt/format.h>

#include "calibration/quality/forecast.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/quality_logs.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "report/quality_band.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

using ForecastJson = OrderedJson;

struct QualityForecastOptions {
  std::string file, curve, run, model, plot;
  std::vector<double> fids;
  double images = 0;
  traces::QualityLogOptions log;
  traces::QualityLog given;
};

ForecastJson interval_json(const calibration::QualityInterval& of) {
  return {{"median", of.median}, {"interval", {of.low, of.high}}};
}

ForecastJson outlook_json(const calibration::QualityModel& model, const calibration::QualityQuestion& question,
                          const calibration::QualityOutlook& outlook, const std::string& run) {
  ForecastJson out = {{"schema", "ganymede.quality-forecast/1"}, {"model", model.name}};
  out["run"] = run.empty() ? ForecastJson(nullptr) : ForecastJson(run);
  for (std::size_t f = 0; f < calibration::kQualityFactors; ++f)
    if (const std::string& level = question.kind.levels.at(f); !level.empty())
      out["kind"][calibration::kQualityFactorNames.at(f)] = level;
  if (question.kind.batch > 0) out["kind"]["batch"] = question.kind.batch;
  out["points"] = question.points.size();
  out["images_seen"] = outlook.images_seen;
  out["best_seen"] = outlook.best_seen > 0 ? ForecastJson(outlook.best_seen) : ForecastJson(nullptr);
  out["diverged"] = outlook.diverged;
  out["horizon_images"] = outlook.horizon;
  out["targets"] = ForecastJson::array();
  for (const calibration::TargetOutlook& target : outlook.targets)
    out["targets"].push_back(
        {{"fid", target.fid},
         {"reached", target.reached},
         {"probability", target.probability},
         {"images", target.images.median > 0 ? interval_json(target.images) : ForecastJson(nullptr)}});
  out["best_fid"] = interval_json(outlook.best);
  out["curve"] = ForecastJson::array();
  for (const calibration::OutlookPoint& point : outlook.curve)
    out["curve"].push_back({{"images", point.images}, {"best_fid", interval_json(point.best)}});
  out["notes"] = outlook.notes;
  return out;
}

std::string outlook_text(const calibration::QualityOutlook& outlook) {
  report::Table table({"FID", "real images", "90 % of those that get there", "never"});
  for (const calibration::TargetOutlook& target : outlook.targets) {
    const bool known = target.images.median > 0;
    table.add({fmt::format("{:g}", target.fid), known ? fmt::format("{:.3g}", target.images.median) : "-",
               target.reached ? "reached"
               : known        ? fmt::format("{:.3g} to {:.3g}", target.images.low, target.images.high)
                              : "-",
               fmt::format("{:.0f} %", 100 * (1 - target.probability))});
  }
  std::string text = table.text();
  text += fmt::format("best FID within {:.3g} images: {:.3g} ({:.3g} to {:.3g})\n", outlook.horizon,
                      outlook.best.median, outlook.best.low, outlook.best.high);
  for (const std::string& note : outlook.notes) text += note + "\n";
  return text;
}

/// The run of the file that was asked for, or its only one.
const calibration::RecordedRun& chosen_run(const std::vector<calibration::RecordedRun>& runs,
                                           const QualityForecastOptions& options) {
  std::vector<std::string> names;
  for (const calibration::RecordedRun& run : runs) {
    if (run.name == options.run) return run;
    names.push_back(run.name);
  }
  if (options.run.empty() && runs.size() == 1) return runs[0];
  const auto close = nearest(options.run, names);
  throw ConfigError(fmt::format("{}: found {} runs{}, expected --run with the name of one{}", options.file, runs.size(),
                                options.run.empty() ? "" : fmt::format(", none of them \"{}\"", options.run),
                                close ? fmt::format("; did you mean \"{}\"?", *close) : ", such as " + names[0]));
}

void run_quality_forecast(const QualityForecastOptions& options, Shared& shared) {
  check_output(shared);
  const calibration::QualityModel model = calibration::load_quality_model(options.curve);
  traces::QualityLog given = options.given;
  add_facts_of_model(options.model, given);
  calibration::QualityQuestion question;
  question.targets = options.fids;
  question.horizon = options.images;
  std::string name;
  if (options.file.empty()) {
    question.kind = kind_of(given);
  } else {
    keep_input(shared, options.file);
    const QualityLogs logs = read_recorded_runs(options.file, options.log, given);
    for (const std::string& note : logs.notes) remark(shared, note);
    const calibration::RecordedRun& run = chosen_run(logs.runs, options);
    question.kind = run.kind;
    question.points = run.points;
    name = run.name;
  }
  const calibration::QualityOutlook outlook = calibration::forecast_quality(model, question);
  const ForecastJson json = outlook_json(model, question, outlook, name);
  if (!options.plot.empty()) {
    report::QualityPicture picture{name.empty() ? "a training of this kind" : name, "images", options.fids.front(), {}};
    for (const calibration::RecordedRun::Point& point : question.points)
      picture.points.emplace_back(point.images, point.fid);
    write_file(options.plot, report::quality_band_svg(json.at("curve"), picture));
  }
  emit(shared, shared.format == "json" ? json.dump(2) + "\n" : outlook_text(outlook));
}

void declare_quality_forecast(Parser command, Shared& shared) {
  auto options = std::make_shared<QualityForecastOptions>();
  command
      .add_option("FILE", options->file,
                  "the log of a training: ganymede.run-log/1, CSV, metric-*.jsonl, StudioGAN's log, an event file; "
                  "without it, the answer is of its kind alone")
      .check(suggest("@files"));
  command.add_option("--fid", options->fids, "the FIDs to reach")
      .required()
      .delimiter(',')
      .check(number_between(1e-3, 1e6));
  command.add_option("--images", options->images, "real images until which it trains; else 1e9")
      .check(number_between(1.0, 1e15));
  command.add_option("--curve", options->curve, "a model that `quality fit` wrote; else the one of the program")
      .check(suggest("@files"));
  command.add_option("--run", options->run, "the training, if the file has several").check(not_empty);
  command.add_option("--model", options->model, "a model of this program, for its networks and loss").check(not_empty);
  command.add_option("--plot", options->plot, "write the lowest FID with its band over images as an SVG picture")
      .check(not_empty);
  add_quality_log_options(command, options->log);
  add_quality_facts(command, options->given);
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_quality_forecast(*options, shared); });
}

}  // namespace

Command quality_forecast_command() {
  return {.name = "forecast",
          .summary = "images until an FID, the chance never to reach it, and the best FID",
          .examples =
              "  ganymede quality forecast run.jsonl --fid 20\n"
              "  ganymede quality forecast metric-fid50k_full.jsonl --fid 5 --images 25e6 --model stylegan2\n"
              "  ganymede quality forecast events.out.tfevents.1 --tag FID --images-per-step 64 --fid 20,10\n",
          .about =
              "Points of the training narrow what is known of its kind. An interval holds for 90 % of the\n"
              "trainings that get there. Where a dataset or a reference is not in the model, it is wide.",
          .declare = declare_quality_forecast};
}

}  // namespace ganymede::cli
