#include "calibration/recipe_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "calibration/kernel_steps.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "traces/recipe.hpp"

namespace ganymede::calibration {
namespace {

/// How far two GPUs are apart: the logarithms of the ratios of their rates.
double rates_apart(const GpuSheet& a, const GpuSheet& b) {
  return std::abs(std::log(a.fp32_flops() / b.fp32_flops())) +
         std::abs(std::log(a.memory_bandwidth / b.memory_bandwidth));
}

/// A trace of the recipe's kernels alone.
traces::StepTrace trace_of(const traces::Recipe& recipe) {
  traces::StepTrace trace;
  trace.kernels = traces::kernels_of(recipe.layers);
  trace.precision = recipe.layers.precision;
  trace.executor = recipe.layers.executor;
  trace.software.backend = traces::kRooflineBackend;
  return trace;
}

std::vector<StepKernel> kernels_of_pass(const traces::Recipe& recipe, int pass) {
  traces::TraceBatch entry;
  entry.batch = pass;
  return kernels_at(trace_of(recipe), entry);
}

/// What the model of kernel times says of a step of so many passes, in seconds; networks are updated once.
double predicted_s(const traces::Recipe& recipe, int pass, int passes, const GpuSheet& sheet) {
  std::vector<StepKernel> kernels = kernels_of_pass(recipe, pass);
  predict(kernels, KernelModel(sheet), true);
  double updates = 0;
  for (const traces::LayerPass& one : recipe.layers.step)
    for (const StepKernel& kernel : kernels)
      if (one.kind == traces::LayerPass::Kind::update && kernel.phase == one.name)
        updates += kernel.times * (kernel.time.central_s + kernel.beside_s);
  return passes * (sum_of(kernels, executor_of(trace_of(recipe))).seconds - updates) + updates;
}

/// True if the row is of a recipe that is alike, which its configuration names: "stylegan3-t/paper".
bool is_of_another(const documents::RecipeStep& row) { return row.config.find('/') != std::string::npos; }

std::optional<RecipeAnchor> find_anchor(const std::string& name, const GpuSheet& target, int pass) {
  const traces::Recipe asked = traces::resolve_recipe(name);
  const documents::RecipeMeasurement* from = nullptr;
  const documents::RecipeStep* best = nullptr;
  using Rank = std::tuple<bool, double, double, bool, double, int>;
  Rank least;
  const auto apart = [](double a, double b) { return a == b ? 0 : std::abs(std::log(a / b)); };
  for (const documents::RecipeMeasurement& one : asked.document.measured) {
    const GpuSheet* sheet = find_gpu_sheet(one.gpu);
    if (sheet == nullptr)
      throw ConfigError(
          fmt::format("recipe {}: measured on \"{}\", expected a GPU that `ganymede list gpus` names", name, one.gpu));
    for (const documents::RecipeStep& row : one.rows) {
      const Rank rank(is_of_another(row), sheet->name == target.name ? 0 : 1 + rates_apart(*sheet, target),
                      apart(row.image, asked.training.image), row.config != asked.config,
                      apart(row.batch_per_gpu, pass), row.gpus);
      if (best != nullptr && rank >= least) continue;
      from = &one, best = &row, least = rank;
    }
  }
  if (best == nullptr) return {};
  const GpuSheet& sheet = *find_gpu_sheet(from->gpu);
  const std::string own = traces::recipe_base(name) + (best->config.empty() ? "" : "/" + best->config);
  const traces::Recipe measured = traces::resolve_recipe(
      (is_of_another(*best) ? best->config : own) + (best->image > 0 ? fmt::format("?image={}", best->image) : ""));
  const int passes = std::max(1, best->batch / (best->gpus * best->batch_per_gpu));
  const double step_s = best->s_per_kimg / 1000 * best->batch;
  RecipeAnchor anchor;
  anchor.ratio = step_s / predicted_s(measured, best->batch_per_gpu, passes, sheet);
  const bool of_gpu = sheet.name == target.name, near = of_gpu && !is_of_another(*best);
  if (!near) anchor.ratio = std::sqrt(anchor.ratio);
  anchor.error = near ? kSameGpuError : kCarriedError;
  anchor.is_it = of_gpu && best->config == asked.config && best->image == asked.training.image &&
                 best->batch_per_gpu == pass && measured.settings == asked.settings &&
                 measured.training.precision == asked.training.precision;
  anchor.text = fmt::format("measured: {}, on {}{}: {} for {} images{}{}", from->by, from->gpu,
                            best->gpus == 1 ? "" : fmt::format(" x {}", best->gpus), to_string(Seconds{step_s}),
                            best->batch, best->image > 0 ? fmt::format(" of {} pixels", best->image) : "",
                            is_of_another(*best) ? fmt::format(" of {}", best->config)
                            : passes == 1        ? ""
                                                 : fmt::format(" in {} passes", passes));
  return anchor;
}

}  // namespace

std::optional<RecipeAnchor> recipe_anchor(const std::string& recipe, const GpuSheet& target, int pass) {
  // A plan asks the same for each of its candidates.
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, int>, std::optional<RecipeAnchor>> known;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace({recipe, target.name, pass});
  if (is_new) place->second = find_anchor(recipe, target, pass);
  return place->second;
}

}  // namespace ganymede::calibration
