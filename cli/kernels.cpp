// ganymede kernels: a step kernel by kernel on a GPU, and measured kernels against the model of their times.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "calibration/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "kernel/launches.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_names.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

struct KernelsOptions {
  std::string gpu, catalog, model, recipe;
  std::string precision, executor;  ///< empty: those of the model
  int batch = 64;
  std::string compare;
  bool verbose = false;
};

calibration::GpuSheet sheet_for(const KernelsOptions& options) {
  if (options.catalog.empty()) {
    if (const calibration::GpuSheet* sheet = platforms::sheet_named(options.gpu)) return *sheet;
    const std::vector<std::string> names = ganymede::names_of(calibration::gpu_sheets());
    throw ConfigError(fmt::format("--gpu {}: not known, expected {}{}; --catalog names a platform file that has others",
                                  options.gpu, list_of(names), did_you_mean(options.gpu, names)));
  }
  const platforms::Gpu gpu = platforms::catalog_gpu(options.catalog, options.gpu);
  if (const auto sheet = calibration::sheet_of(gpu)) return *sheet;
  throw ConfigError(fmt::format(
      "{}: /gpus/{}: found no \"multiprocessors\", expected their number: the time of a kernel depends on it",
      options.catalog, gpu.name));
}

bool is_file(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

traces::StepTrace trained_model(const std::string& name, const std::string& precision) {
  traces::StepTrace trace;
  kernel::TrainOptions train;
  train.model = name;
  train.precision = precision;  // kernels_of() takes what our training does not have for fp32
  trace.model = name;
  trace.software = {"ganymede", "", ""};
  trace.kernels = kernel::kernels_of(train);
  return trace;
}

traces::StepTrace of_layers(traces::LayerList layers, const KernelsOptions& options) {
  if (!options.precision.empty()) layers.precision = options.precision;
  traces::StepTrace trace;
  trace.model = layers.name;
  trace.software = {"layer list", layers.name, std::string(traces::kRooflineBackend)};
  trace.precision = layers.precision;
  trace.executor = layers.executor;
  trace.kernels = traces::kernels_of(layers);
  return trace;
}

/// A trace of which only the kernels matter.
traces::StepTrace listed_model(const KernelsOptions& options) {
  if (!options.recipe.empty()) return of_layers(traces::resolve_recipe(options.recipe).layers, options);
  const std::string& name = options.model;
  std::vector<std::string> known = kernel::model_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return trained_model(name, options.precision);
  for (const EmbeddedText& list : embedded_layers()) known.emplace_back(list.name);
  const std::string list =
      traces::list_name(name.starts_with(traces::kLayers) ? name.substr(traces::kLayers.size()) : name);
  if (!is_file(name) && std::find(known.begin(), known.end(), list) == known.end()) {
    throw ConfigError(fmt::format("--model {}: not known, expected {} or a file (.json){}", name, list_of(known),
                                  did_you_mean(name, known)));
  }
  if (is_file(name)) {
    const JsonNode root = JsonNode::load(name);
    if (root.is_object() && root.value().value("schema", Json()) == traces::kStepTraceSchema) {
      traces::StepTrace trace = traces::read_step_trace(root);
      if (trace.kernels.empty()) root.fail("the trace lists no kernels; `ganymede train --trace` writes one that does");
      return trace;
    }
  }
  return of_layers(traces::load_layer_list(name), options);
}

/// Throws ConfigError for a precision in which no kernel of the GPU could run.
void check_precision(const std::string& precision, const calibration::GpuSheet& sheet) {
  if ((precision == "tf32" || precision == "bf16") && sheet.tensor_tf32_flops == 0)
    throw ConfigError(
        fmt::format("--precision {}: {} has no tensor cores for it, expected fp32 or fp16", precision, sheet.name));
}

/// Throws ConfigError for a model or GPU that is not known, with the nearest name, for a GPU whose number of
/// multiprocessors is not stated, and for a trace that lists no kernels.
calibration::KernelStep step_of(const KernelsOptions& options) {
  const calibration::KernelModel model(sheet_for(options));
  check_precision(options.precision, model.sheet());
  traces::StepTrace trace = listed_model(options);
  if (!options.precision.empty()) trace.precision = options.precision;
  if (!options.executor.empty()) trace.executor = options.executor;
  return calibration::kernel_step(trace, model, options.batch);
}

/// A file that was cut short within its last number reads like a whole one; that its last line has no end may tell.
bool ends_within_a_line(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  return in.tellg() > 0 && in.seekg(-1, std::ios::end) && in.get() != '\n';
}

void compare_kernels(const KernelsOptions& options, Shared& shared) {
  keep_input(shared, options.compare);
  std::vector<calibration::MeasuredKernel> kernels = calibration::read_measured_kernels(options.compare);
  if (ends_within_a_line(options.compare))
    remark(shared,
           fmt::format("{}: line {}: ends without a line break; if the file was cut short, its last time is wrong",
                       options.compare, kernels.back().line));
  if (!options.gpu.empty()) kernels = calibration::kernels_on_gpu(std::move(kernels), options.gpu, options.compare);
  const std::vector<calibration::KernelErrors> errors = calibration::compare(kernels);
  emit(shared, shared.format == "json"  ? calibration::to_json(errors).dump(2) + "\n"
               : shared.format == "csv" ? calibration::to_csv(errors)
                                        : calibration::to_table(errors, result_width(shared)));
}

void run_kernels(const KernelsOptions& options, Shared& shared) {
  check_output(shared);
  if (!options.compare.empty()) return compare_kernels(options, shared);
  if ((options.model.empty() && options.recipe.empty()) || options.gpu.empty())
    throw ConfigError("kernels needs --gpu and --model (or --recipe) for the kernels of a step, or --compare FILE.csv");
  keep_input(shared, options.model);
  const calibration::KernelStep step = step_of(options);
  emit(shared, shared.format == "json"  ? calibration::to_json(step).dump(2) + "\n"
               : shared.format == "csv" ? calibration::to_csv(step)
                                        : calibration::to_table(step, options.verbose, result_width(shared)));
}

void declare_kernels(Parser command, Shared& shared) {
  auto options = std::make_shared<KernelsOptions>();
  command.add_option("--gpu", options->gpu, "the GPU; with --compare: only its kernels", suggest("@sheets"));
  Option model = command.add_option(
      "--model", options->model,
      "a model of `ganymede list models`, a list of layers, or a file: layers, or a step trace with kernels",
      suggest("@models @layers @files"));
  Option recipe = command.add_option("--recipe", options->recipe, "a recipe in its place: ganymede list recipes",
                                     suggest("@recipes @files"));
  recipe.excludes(model);
  Option batch = command.add_option("--batch", options->batch, "images in a step", integer_between(1, 1 << 24));
  batch.capture_default_str();
  Option precision =
      command.add_option("--precision", options->precision, "of products and convolutions; default: the model's");
  precision.check(one_of({"fp32", "tf32", "bf16", "fp16"}));
  Option executor =
      command.add_option("--executor", options->executor, "how the host launches kernels; default: the model's");
  executor.check(one_of({"eager", "compiled", "graph"}));
  Option catalog = command.add_option("--catalog", options->catalog, "a catalog or platform file that has the GPU",
                                      suggest("@providers @files"));
  Option compare =
      command.add_option("--compare", options->compare,
                         "measured kernels, in the columns of NeuSight's or DeepBench's figures: prints the model's "
                         "errors",
                         suggest("@files"));
  Option verbose =
      command.add_flag("--verbose", options->verbose, "every figure of each kernel, in a table of about 200 columns");
  for (Option other : {model, recipe, batch, precision, executor, catalog, verbose}) compare.excludes(other);
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([options, &shared] { run_kernels(*options, shared); });
}

}  // namespace

Command kernels_command() {
  return {.name = "kernels",
          .summary = "a step kernel by kernel on a GPU, without running it; measured kernels against the model",
          .examples =
              "  ganymede kernels --gpu A100-40GB --model dcgan-64 --batch 128\n"
              "  ganymede kernels --gpu V100 --model resnet50 --batch 64 --precision fp16 --format csv\n"
              "  ganymede kernels --compare measured.csv --gpu V100 --format json\n",
          .about =
              "Predicts each kernel from its shape and the GPU's data sheet: its time with a 90 % interval, its\n"
              "share of the step, and what limits it; with --verbose, and in csv and json, algorithm, arithmetic,\n"
              "bytes, tiles and waves too. With --compare it prints how far it is off on measured kernels: each for\n"
              "itself, and in sums of 20.",
          .declare = declare_kernels};
}

}  // namespace ganymede::cli
