// ganymede quality: models of FID against images, and what they say of a training.

#include <fmt/format.h>

#include <memory>

#include "calibration/quality/foreign.hpp"
#include "calibration/quality/outlook_report.hpp"
#include "cli/command.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "plan/recorded_runs.hpp"
#include "report/forecasts.hpp"

namespace ganymede::cli {
namespace {

/// Declares --dataset, --reference, --backbone, …, --batch, which fill `given`.
void add_quality_facts(Parser command, traces::QualityLog& given) {
  const auto add = [&](const char* fact, const char* description) {
    command
        .add_option_callback(
            fmt::format("--{}", fact), [&given, fact](const std::string& text) { given.facts[fact] = text; },
            description)
        .check(not_empty);
  };
  add("dataset", "what it trains on, such as CIFAR10, as the model of recorded trainings calls it");
  add("reference", "what FID compares with, such as 'test 10000'; figures of different references never mix");
  add("backbone", "networks: dcgan, resnet, big_resnet, stylegan2");
  add("conditioning", "no, acgan, projgan, contragan, ...");
  add("loss", "vanilla, hinge, least_square, wasserstein, logistic");
  add("diffaug", "1 with differentiable augmentation, else 0");
  add("ada", "1 with adaptive augmentation, else 0");
  command.add_option("--batch", given.batch, "images of one update over all GPUs, accumulation included",
                     number_between(1.0, 1e9));
}

/// Declares --runs, --images-per-step and --tag.
void add_quality_log_options(Parser command, traces::QualityLogOptions& options) {
  command.add_option("--runs", options.runs, "a CSV that says more of each run: dataset, fid_reference, backbone, ...",
                     suggest("@files"));
  command.add_option("--images-per-step", options.images_per_step,
                     "for logs that count steps: real images that the discriminator sees in one",
                     number_between(1.0, 1e9));
  command.add_option("--tag", options.tag, "the scalar in TensorBoard's files, if several have \"fid\" in their name",
                     not_empty);
}

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
    plan::RecordedRuns logs = plan::read_recorded_runs(file, options.log, options.given);
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

struct QualityForecastOptions {
  std::string file, curve, run, model, plot;
  std::vector<double> fids;
  double images = 0;
  traces::QualityLogOptions log;
  traces::QualityLog given;
};

/// Throws ConfigError if the program's curve says nothing of the model and no other curve is given.
void check_forecast(const std::string& model, const std::string& curve) {
  if (const std::string why = calibration::why_no_forecast(model, "--curve FILE"); curve.empty() && !why.empty())
    throw ConfigError("--model: " + why);
}

void run_quality_forecast(const QualityForecastOptions& options, Shared& shared) {
  check_output(shared);
  check_second_output(shared, options.plot);
  check_forecast(options.model, options.curve);
  const calibration::QualityModel model = calibration::load_quality_model(options.curve);
  traces::QualityLog given = options.given;
  plan::add_facts_of_model(options.model, given);
  calibration::QualityQuestion question;
  question.targets = options.fids;
  question.horizon = options.images;
  std::string name;
  if (options.file.empty()) {
    question.kind = plan::kind_of(given);
  } else {
    keep_input(shared, options.file);
    const plan::RecordedRuns logs = plan::read_recorded_runs(options.file, options.log, given);
    for (const std::string& note : logs.notes) remark(shared, note);
    const calibration::RecordedRun& run = plan::chosen_run(logs.runs, options.run, options.file);
    question.kind = run.kind;
    question.points = run.points;
    name = run.name;
  }
  const calibration::QualityOutlook outlook = calibration::forecast_quality(model, question);
  const OrderedJson json = calibration::to_json(model, question, outlook, name);
  if (!options.plot.empty()) {
    report::QualityPicture picture{name.empty() ? "a training of this kind" : name, false, options.fids.front()};
    for (const auto& [images, best] : outlook.curve) picture.band.add(images, best.median, best.low, best.high);
    for (const calibration::RecordedRun::Point& point : question.points)
      picture.points.emplace_back(point.images, point.fid);
    write_file(options.plot, report::quality_band_svg(picture));
  }
  emit(shared, shared.format == "json" ? json.dump(2) + "\n" : calibration::to_table(outlook));
}

void declare_quality_forecast(Parser command, Shared& shared) {
  auto options = std::make_shared<QualityForecastOptions>();
  command.add_option("FILE", options->file,
                     "the log of a training: ganymede.run-log/1, CSV, metric-*.jsonl, StudioGAN's log, an event file; "
                     "without it, the answer is of its kind alone",
                     suggest("@files"));
  command.add_option("--fid", options->fids, "the FIDs to reach")
      .required()
      .delimiter(',')
      .check(number_between(1e-3, 1e6));
  command.add_option("--images", options->images, "real images until which it trains; else 1e9",
                     number_between(1.0, 1e15));
  command.add_option("--curve", options->curve, "a model that `quality fit` wrote; else the one of the program",
                     suggest("@files"));
  command.add_option("--run", options->run, "the training, if the file has several", not_empty);
  command.add_option("--model", options->model, "a model of this program, for its networks and loss", not_empty);
  command.add_option("--plot", options->plot, "write the lowest FID with its band over images as an SVG picture",
                     not_empty);
  add_quality_log_options(command, options->log);
  add_quality_facts(command, options->given);
  add_result(command, shared, {"table", "json"});
  command.callback([options, &shared] { run_quality_forecast(*options, shared); });
}

struct QualityPoliciesOptions {
  std::string curve, model;
  double usd_per_million = 0;
  calibration::PolicyQuestion question;
  traces::QualityLog given;
};

void run_quality_policies(const QualityPoliciesOptions& options, Shared& shared) {
  check_output(shared);
  check_forecast(options.model, options.curve);
  const calibration::QualityModel model = calibration::load_quality_model(options.curve);
  QualityPoliciesOptions asked = options;
  plan::add_facts_of_model(options.model, asked.given);
  asked.question.kind = plan::kind_of(asked.given);
  const calibration::PolicyComparison all = calibration::compare_quality_policies(model, asked.question);
  if (all.policies.empty())
    throw Infeasible(fmt::format("hardly any training of this kind gets to an FID of {:g}", asked.question.fid));
  emit(shared, shared.format == "json" ? calibration::to_json(asked.question, all, asked.usd_per_million).dump(2) + "\n"
                                       : calibration::to_table(asked.question, all, asked.usd_per_million));
}

void declare_quality_policies(Parser command, Shared& shared) {
  constexpr int kMostSeeds = 64;
  auto options = std::make_shared<QualityPoliciesOptions>();
  command.add_option("--fid", options->question.fid, "the FID to reach").required().check(number_between(1e-3, 1e6));
  command.add_option("--images", options->question.horizon,
                     "most real images of one training; else those within which 95 % of those that get there do",
                     number_between(1e5, 1e15));
  command.add_option("--quality-every", options->question.check, "images from one evaluation to the next")
      .capture_default_str()
      .check(number_between(1e3, 1e12));
  command.add_option("--seeds", options->question.seeds, "most trainings, or those that halving begins with")
      .capture_default_str()
      .check(integer_between(1, kMostSeeds));
  command.add_option("--usd-per-million", options->usd_per_million, "dollars that a million images cost, for the bill",
                     positive_number());
  command.add_option("--curve", options->curve, "a model that `quality fit` wrote; else the one of the program",
                     suggest("@files"));
  command.add_option("--model", options->model, "a model of this program, for its networks and loss", not_empty);
  add_quality_facts(command, options->given);
  add_result(command, shared, {"table", "json"});
  command.callback([options, &shared] { run_quality_policies(*options, shared); });
}

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

Command quality_policies_command() {
  return {.name = "policies",
          .summary = "early stopping, restarts and successive halving: the chance of an FID and the bill",
          .examples =
              "  ganymede quality policies --fid 60 --model dcgan-64 --dataset CIFAR10 --reference 'test 10000'\n"
              "  ganymede quality policies --fid 10 --backbone big_resnet --seeds 8 --usd-per-million 0.5\n",
          .about =
              "Draws trainings of the kind and lets each policy end, repeat or choose among them. All images count,\n"
              "those of trainings that were given up too.",
          .declare = declare_quality_policies};
}

void declare_quality(Parser command, Shared& shared) {
  command.require_subcommand();
  for (const Command& part : {quality_fit_command(), quality_forecast_command(), quality_policies_command()})
    add_command(command, part, shared);
}

}  // namespace

Command quality_command() {
  return {.name = "quality",
          .summary = "how many images an FID takes, and whether a training gets there",
          .examples =
              "  ganymede quality forecast --fid 20 --dataset CIFAR10 --reference 'test 10000' --backbone big_resnet\n"
              "  ganymede quality forecast run.jsonl --fid 20,10 --model dcgan-64\n"
              "  ganymede quality fit points.csv -o curve.json\n",
          .about = "Forecasts come from a model of recorded trainings, in which those that diverged count too.",
          .declare = declare_quality};
}

}  // namespace ganymede::cli
