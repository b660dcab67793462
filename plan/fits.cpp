#include "plan/fits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "calibration/device_memory.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "plan/pick_trace.hpp"
#include "platforms/catalog_lists.hpp"
#include "platforms/gpu_names.hpp"
#include "traces/layer_list.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::plan {
namespace {

traces::StepTrace counted(traces::LayerList list, const std::string& precision) {
  if (!precision.empty()) list.precision = precision;
  std::vector<int> batches;
  for (int batch = 1; batch <= 4096; batch *= 2) batches.push_back(batch);
  // Only the memory of the trace is looked at, which does not depend on the device.
  return traces::trace_of(list, batches, {"GPU", FlopsPerSecond{1e13}, BytesPerSecond{1e12}, Seconds{0}, Bytes{1e9}});
}

/// The schema that a document states; "" if it states none.
std::string schema_of(const JsonNode& root) {
  if (!root.is_object() || !root.value().contains("schema")) return "";
  const Json& schema = root.value().at("schema");
  return schema.is_string() ? schema.get<std::string>() : "";
}

/// True for the name of a file that is a recipe.
bool is_own_recipe(const std::string& name) {
  return traces::is_recipe_file(name) &&
         schema_of(JsonNode::load(traces::recipe_base(name))) == documents::kRecipeSchema;
}

traces::StepTrace trace_for(const FitsOptions& options, std::string& how) {
  const std::string& name = options.model;
  const auto recorded = [&](traces::StepTrace trace) {
    if (!options.precision.empty() && options.precision != trace.precision)
      throw ConfigError(
          fmt::format("--precision {}: {} was recorded in {}; only a list of layers can be taken in "
                      "another precision",
                      options.precision, name, trace.precision));
    return trace;
  };
  const std::vector<std::string> recipes = traces::recipe_names();
  if (std::find(recipes.begin(), recipes.end(), traces::recipe_base(name)) != recipes.end() || is_own_recipe(name)) {
    how = std::string(traces::kRecipe) + name;
    return recorded(traces::recipe_trace(name));
  }
  if (!name.starts_with(traces::kRecipe) && (name.find('/') != std::string::npos || name.ends_with(".json"))) {
    const JsonNode root = JsonNode::load(name);
    how = name;
    if (schema_of(root) == traces::kStepTraceSchema) return recorded(traces::read_step_trace(root));
    return counted(traces::read_layer_list(root), options.precision);
  }
  const std::string picked = pick_trace(JsonNode::wrap({{"model", name}}, "fits", "").child("model"), how);
  if (picked.starts_with(traces::kLayers)) return counted(traces::load_layer_list(picked), options.precision);
  return recorded(
      traces::read_step_trace(JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(picked), picked, "")), picked)));
}

/// The GPUs of the catalogs by name; those that are wanted, also by their data sheet, or all but TPUs and processors.
/// The largest come last.
std::vector<platforms::Gpu> gpus_for(const std::vector<std::string>& asked) {
  std::map<std::string, platforms::Gpu> all;
  platforms::for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    all.emplace(gpu.name, gpu);
  });
  std::vector<platforms::Gpu> of_catalogs, gpus;
  for (const auto& [name, gpu] : all) of_catalogs.push_back(gpu);
  std::set<std::string> wanted;
  for (const std::string& one : asked)
    for (const std::string& name : platforms::gpus_named(one, of_catalogs)) {
      wanted.insert(name);
      if (all.contains(name)) continue;
      const auto gpu = platforms::gpu_of_sheet(name);
      if (!gpu)
        throw ConfigError(
            fmt::format("--gpu {}: no catalog has it, and there is no data sheet; `ganymede list gpus` "
                        "names them{}",
                        name, platforms::did_you_mean_gpu(name)));
      gpus.push_back(*gpu);
    }
  for (const platforms::Gpu& gpu : of_catalogs)
    if (asked.empty() ? gpu.kind == platforms::Gpu::Kind::gpu : wanted.contains(gpu.name)) gpus.push_back(gpu);
  std::stable_sort(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) { return a.memory < b.memory; });
  return gpus;
}

/// "fp32", or "fp32 and fp16" where layers have another precision than the rest.
std::string precision_of(const traces::StepTrace& trace) {
  std::string text = trace.precision;
  for (const traces::TraceKernel& kernel : trace.kernels)
    if (!kernel.precision.empty() && text.find(kernel.precision) == std::string::npos)
      text += " and " + kernel.precision;
  return text;
}

documents::FitsMemory memory_of(const calibration::DeviceMemory& memory) {
  return {memory.expected, {memory.low, memory.high}};
}

}  // namespace

documents::Fits fits(const traces::StepTrace& trace, int batch, const std::vector<platforms::Gpu>& gpus,
                     bool several_gpus) {
  documents::Fits out;
  out.model = trace.model, out.precision = precision_of(trace), out.several_gpus = several_gpus;
  const bool asked = batch > 0;
  out.batch = asked ? batch : std::max(1, trace.batches.front().batch);
  const calibration::DeviceMemory memory = calibration::device_memory(trace, out.batch, gpus.front(), several_gpus);
  if (memory.expected <= 0) throw ConfigError(fmt::format("the trace of {} states no memory", trace.model));
  for (const auto& [kind, bytes] : memory.bytes)
    if (!kind.starts_with("host")) out.kinds.push_back({kind, bytes});
  out.allocated = memory.allocated;
  out.total = memory_of(memory);
  for (const platforms::Gpu& gpu : gpus) {
    documents::FitsGpu row;
    row.gpu = gpu.name, row.memory = gpu.memory.si;
    row.largest_batch = calibration::largest_batch(trace, gpu, several_gpus, /*surely=*/true);
    row.perhaps_batch = calibration::largest_batch(trace, gpu, several_gpus, /*surely=*/false);
    if (asked) {
      const calibration::DeviceMemory there = calibration::device_memory(trace, batch, gpu, several_gpus);
      row.at_batch = memory_of(there);
      row.at_verdict = there.high <= row.memory ? "fits" : there.expected <= row.memory ? "perhaps" : "no";
    }
    out.gpus.push_back(std::move(row));
  }
  return out;
}

documents::Fits fits(const FitsOptions& options) {
  std::string how;
  const traces::StepTrace trace = trace_for(options, how);
  const std::vector<platforms::Gpu> gpus = gpus_for(options.gpus);
  documents::Fits out = fits(trace, options.batch, gpus, options.several_gpus);
  out.trace = how;
  out.how = traces::is_counted(trace.software)
                ? fmt::format("counted from layers: what {} keeps and PyTorch's allocator holds",
                              trace.executor == "graph" ? "a graph executor (TensorFlow)" : "PyTorch's autograd")
            : trace.software.name == "PyTorch" ? "the peak that PyTorch's allocator recorded, and what it holds beside"
                                               : "that of Ganymede's own kernel, exactly";
  const std::string measured =
      calibration::device_memory(trace, out.batch, gpus.front(), options.several_gpus).measured;
  if (!measured.empty()) out.how += fmt::format("; what a pass takes is scaled to what was {}", measured);
  for (const platforms::Gpu& gpu : gpus)
    if (gpu.kind != platforms::Gpu::Kind::gpu)
      out.how += fmt::format("; {} is no GPU, and what its own software holds is not known", gpu.name);
  return out;
}

}  // namespace ganymede::plan
