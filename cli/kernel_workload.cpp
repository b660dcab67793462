#include "cli/kernel_workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/layer_lists.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/text.hpp"
#include "kernel/launches.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

calibration::GpuSheet sheet_for(const KernelWorkloadOptions& options) {
  if (options.catalog.empty()) {
    if (const calibration::GpuSheet* sheet = calibration::find_gpu_sheet(options.gpu)) return *sheet;
    std::vector<std::string> names;
    for (const calibration::GpuSheet& sheet : calibration::gpu_sheets()) names.push_back(sheet.name);
    const auto close = nearest(options.gpu, names);
    throw ConfigError(fmt::format("--gpu {}: not known, expected {}{}; --catalog names a platform file that has others",
                                  options.gpu, list_of(names),
                                  close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
  }
  const platforms::Gpu gpu = catalog_gpu(options.catalog, options.gpu);
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

/// A trace of which only the kernels matter.
traces::StepTrace listed_model(const KernelWorkloadOptions& options) {
  const std::string& name = options.model;
  std::vector<std::string> known = kernel::model_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return trained_model(name, options.precision);
  for (const EmbeddedText& list : embedded_layers()) known.emplace_back(list.name);
  const std::string list =
      traces::list_name(name.starts_with(traces::kLayers) ? name.substr(traces::kLayers.size()) : name);
  if (!is_file(name) && std::find(known.begin(), known.end(), list) == known.end()) {
    const auto close = nearest(name, known);
    throw ConfigError(fmt::format("--model {}: not known, expected {} or a file (.json){}", name, list_of(known),
                                  close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
  }
  if (is_file(name)) {
    const JsonNode root = JsonNode::load(name);
    if (root.is_object() && root.value().value("schema", "") == traces::kStepTraceSchema) {
      traces::StepTrace trace = traces::read_step_trace(root);
      if (trace.kernels.empty()) root.fail("the trace lists no kernels; `ganymede train --trace` writes one that does");
      return trace;
    }
  }
  traces::LayerList layers = load_layer_list(name);
  if (!options.precision.empty()) layers.precision = options.precision;
  traces::StepTrace trace;
  trace.model = layers.name;
  trace.software = {"layer list", layers.name, std::string(traces::kRooflineBackend)};
  trace.precision = layers.precision;
  trace.executor = layers.executor;
  trace.kernels = traces::kernels_of(layers);
  return trace;
}

/// Throws ConfigError for a precision in which no kernel of the GPU could run.
void check_precision(const std::string& precision, const calibration::GpuSheet& sheet) {
  if ((precision == "tf32" || precision == "bf16") && sheet.tensor_tf32_flops == 0)
    throw ConfigError(
        fmt::format("--precision {}: {} has no tensor cores for it, expected fp32 or fp16", precision, sheet.name));
}

}  // namespace

KernelStep kernel_step(const KernelWorkloadOptions& options) {
  const calibration::KernelModel model(sheet_for(options));
  check_precision(options.precision, model.sheet());
  traces::StepTrace trace = listed_model(options);
  if (!options.precision.empty()) trace.precision = options.precision;
  if (!options.executor.empty()) trace.executor = options.executor;
  traces::TraceBatch entry;
  entry.batch = options.batch;
  if (!trace.batches.empty()) entry.stage = trace.batches.back().stage;
  if (trace.batches.empty() && !trace.kernels.empty()) entry.stage = trace.kernels.back().stage;
  KernelStep step;
  step.gpu = model.sheet().name;
  step.model = trace.model, step.precision = trace.precision, step.batch = options.batch;
  step.executor = calibration::executor_of(trace);
  step.kernels = calibration::kernels_at(trace, entry);
  calibration::predict(step.kernels, model);
  step.sum = calibration::sum_of(step.kernels, step.executor, calibration::list_error(trace));
  return step;
}

}  // namespace ganymede::cli
