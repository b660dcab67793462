// "workload" of a scenario: trace, batch, dataset, the stages of a growing model and when to stop.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "calibration/batch_fit.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "sim/scenario/sections.hpp"
#include "traces/quality_curve.hpp"
#include "traces/recipe.hpp"

namespace ganymede::sim {
namespace {

constexpr std::int64_t kMaxSteps = 1'000'000'000'000;  // also of images
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr double kMaxPixels = 1 << 30;  // of an image
/// How much a stage's length varies if the scenario does not say; an assumption. Published schedules are fixed, but a
/// stage is prolonged or cut short by how training goes.
constexpr double kStageVariation = 0.25;

Dataset read_dataset(const JsonNode& node) {
  JsonObject in(node);
  Dataset dataset;
  dataset.name = in.required("name").as_string();
  dataset.images = in.required("images").as_integer(1, kMaxSteps);
  if (auto bytes = in.optional("bytes_per_image")) dataset.bytes_per_image = bytes->as_number(0, 1e12);
  if (auto pixels = in.optional("pixels")) dataset.pixels = pixels->as_number(1, kMaxPixels);
  in.finish();
  return dataset;
}

/// True if the goal's curve is a file of single trainings, a ganymede.quality/1, and no model of many.
bool is_of_single_trainings(const JsonNode& node) {
  if (!node.is_object() || node.value().contains("inception_score")) return true;
  if (!node.value().contains("curve")) return false;
  const JsonNode file = node.child("curve");
  try {
    const JsonNode curve = JsonNode::load(file.directory() / file.as_string());
    return !curve.is_object() || curve.value().value("schema", Json()) != calibration::kQualityModelSchema;
  } catch (const ConfigError&) {
    return true;  // which says what is wrong with it
  }
}

/// Images of a median training that gets to the FID, by a model of recorded trainings.
std::int64_t images_to_fid(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint,
                           ScenarioInputCache& cache) {
  const auto [goal, hash] = cache.quality(node, scenario.trace->model);
  if (hash != 0) fingerprint.replace("/workload/quality/curve", hash);
  const auto batch = static_cast<double>(scenario.images_a_step(scenario.workers()));
  scenario.quality = goal.at(batch);
  scenario.warnings.push_back(goal.text(batch));
  for (const std::string& note : goal.notes(batch)) scenario.warnings.push_back(note);
  return goal.images(batch);
}

/// Images after which the recorded trainings of the curve had reached the quality that `node` states, rounded up.
std::int64_t images_to_quality(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  traces::QualityTarget target;
  const JsonNode wanted = in.one_of("fid", "inception_score");
  (node.value().contains("fid") ? target.fid : target.inception_score) = wanted.as_number(1e-9, 1e9);
  const JsonNode file = in.required("curve");
  in.finish();
  const std::filesystem::path path = file.directory() / file.as_string();
  std::string text;
  try {
    text = read_file(path);
  } catch (const ConfigError& error) {
    file.fail(fmt::format("{}; `ganymede train --quality 256 --quality-every 100 --quality-curve FILE` records one",
                          error.what()));
  }
  fingerprint.replace("/workload/quality/curve", text);
  const traces::QualityCurves curves = traces::read_quality_curves(JsonNode::parse(text, path.string()));
  if (curves.model != scenario.trace->model)
    file.fail(fmt::format("the quality curve is of {}, the trace of {}", curves.model, scenario.trace->model));
  const auto batch = static_cast<double>(scenario.images_a_step(scenario.workers()));
  try {
    const traces::ImagesNeeded needed = traces::images_for(curves, target, batch);
    scenario.warnings.push_back(fmt::format(
        "{} {:g} takes {:.4g} images at a batch of {:g} in all ({:.4g} to {:.4g} in the recorded trainings), in the "
        "features of {} on {}; no other features' figures compare with it",
        target.fid ? "FID" : "inception score", wanted.as_number(0, 1e9), needed.images, batch, needed.low, needed.high,
        curves.features, curves.dataset));
    scenario.warnings.insert(scenario.warnings.end(), needed.notes.begin(), needed.notes.end());
    return std::llround(std::ceil(needed.images * (1 - 1e-9)));  // an exact number is not rounded up
  } catch (const ConfigError& error) {
    wanted.fail(error.what());
  }
}

void read_target(JsonObject& in, Scenario& scenario, Fingerprint& fingerprint, ScenarioInputCache& cache,
                 const traces::Recipe* recipe) {
  const std::int64_t global_batch = scenario.images_a_step(scenario.workers());
  assert(global_batch > 0);
  const auto steps_for = [&](std::int64_t images) { return (images + global_batch - 1) / global_batch; };
  auto steps = in.optional("steps");
  auto epochs = in.optional("epochs");
  auto images = in.optional("images");
  auto quality = in.optional("quality");
  const bool stated = steps || epochs || images || quality;
  if (const std::int64_t count =
          recipe && !stated ? recipe->images(static_cast<int>(global_batch), scenario.dataset.images) : 0;
      count > 0) {  // the recipe's
    scenario.target = Target::images;
    scenario.images = count;
    scenario.steps = steps_for(count);
    return;
  }
  if (recipe && !stated)
    in.node().fail(recipe->training.epochs > 0
                       ? "the recipe's target is in epochs, expected \"dataset\", to know how many images one has"
                       : "the recipe states no target, expected \"steps\", \"epochs\", \"images\" or \"quality\"");
  if (int{steps.has_value()} + int{epochs.has_value()} + int{images.has_value()} + int{quality.has_value()} != 1)
    in.node().fail("expected exactly one of \"steps\", \"epochs\", \"images\" and \"quality\"");
  if (quality) {
    scenario.target = Target::images;
    scenario.images = is_of_single_trainings(*quality) ? images_to_quality(*quality, scenario, fingerprint)
                                                       : images_to_fid(*quality, scenario, fingerprint, cache);
    scenario.steps = steps_for(scenario.images);
  } else if (steps) {
    scenario.target = Target::steps;
    scenario.steps = steps->as_integer(1, kMaxSteps);
    scenario.images = scenario.steps * global_batch;
  } else if (images) {
    scenario.target = Target::images;
    scenario.images = images->as_integer(1, kMaxSteps);
    scenario.steps = steps_for(scenario.images);
  } else {
    scenario.target = Target::epochs;
    if (scenario.dataset.images == 0)
      epochs->fail("epochs need \"dataset\" beside them, to know how many images one has");
    const std::int64_t count = epochs->as_integer(1, kMaxSteps / scenario.dataset.images);
    scenario.steps = count * steps_for(scenario.dataset.images);
    scenario.images = count * scenario.dataset.images;
  }
}

/// The stages of a growing model and their shares of the target.
void read_stages(JsonObject& in, Scenario& scenario) {
  const std::size_t count = scenario.stages.size();
  scenario.stage_shares.assign(count, 1 / static_cast<double>(count));
  scenario.stage_variation = count > 1 ? kStageVariation : 0;
  auto node = in.optional("stages");
  if (!node) return;
  if (count == 1) node->fail("the trace is not of a growing model: it has one stage");
  JsonObject stages(*node);
  if (auto shares = stages.optional("shares")) {
    scenario.stage_shares = shares->as_numbers(0, 1);
    double sum = 0;
    for (const double share : scenario.stage_shares) sum += share;
    if (scenario.stage_shares.size() != count || std::abs(sum - 1) > 1e-6)
      shares->expected(fmt::format("{} shares that sum to 1, one a stage of the trace", count));
  }
  if (auto variation = stages.optional("variation")) scenario.stage_variation = variation->as_number(0, 0.9);
  stages.finish();
}

/// Reads into how many passes a worker divides its batch. Returns the images of one pass.
int read_pass(const JsonNode& batch_per_gpu, const std::optional<JsonNode>& accumulation_steps, Scenario& scenario) {
  const std::int64_t images = batch_per_gpu.as_integer(1, kMaxBatch);
  if (!accumulation_steps) return static_cast<int>(images);
  const std::int64_t passes = accumulation_steps->as_integer(1, kMaxBatch);
  if (images % passes != 0)
    accumulation_steps->expected(fmt::format("a number that divides \"batch_per_gpu\", which is {}", images));
  scenario.accumulation_steps = static_cast<int>(passes);
  return static_cast<int>(images / passes);
}

/// Chooses the trace entries of `batch` images, those of one pass: one for each stage of a growing model, in the order
/// of the trace. If the size was not recorded, entries are derived from the recorded sizes.
void choose_entries(const JsonNode& node, int batch, Scenario& scenario) {
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < scenario.trace->batches.size(); ++i) {
    const traces::TraceBatch& entry = scenario.trace->batches[i];
    if (entry.batch == batch) scenario.stages.push_back(i);
    if (std::find(stages.begin(), stages.end(), entry.stage) == stages.end()) stages.push_back(entry.stage);
  }
  try {
    if (!scenario.stages.empty()) return;
    traces::StepTrace derived = *scenario.trace;
    for (const std::string& stage : stages) scenario.stages.push_back(calibration::entry_for(derived, stage, batch));
    scenario.trace = std::make_shared<const traces::StepTrace>(std::move(derived));
  } catch (const ConfigError& error) {
    node.fail(fmt::format("found {}, {}", batch, error.what()));
  }
}

}  // namespace

void read_workload(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint, ScenarioInputCache& cache) {
  JsonObject in(node);
  const bool is_recipe = node.value().contains("recipe");
  const JsonNode source = is_recipe ? in.one_of("trace", "recipe") : in.required("trace");
  std::optional<traces::Recipe> recipe;
  const auto located = [&](auto read) {
    try {
      return read();
    } catch (const ConfigError& error) {
      source.fail(error.what());
    }
  };
  const std::string named = source.as_string();
  if (is_recipe) recipe = located([&] { return traces::resolve_recipe(named, source.directory()); });
  const JsonNode trace_at = recipe ? JsonNode::wrap(Json(recipe->trace_name()), source.file(), "") : source;
  const auto measured = in.optional("measured");
  const auto [trace, hash] = cache.trace(trace_at, measured ? &*measured : nullptr);
  scenario.trace = trace;
  if (Synchronization& sync = scenario.synchronization; sync.mode == Mode::all_reduce && !sync.reduction_stated)
    sync.flat_reduction = traces::reduces_flat(trace->software);
  fingerprint.replace(is_recipe ? "/workload/recipe" : "/workload/trace", hash);

  const bool own_batch = is_recipe && !node.value().contains("batch_per_gpu");
  const JsonNode batch_per_gpu = own_batch ? source : in.required("batch_per_gpu");
  int pass = 0;
  if (own_batch) {
    const traces::RecipeBatch split = located([&] { return recipe->batch_on(scenario.workers()); });
    scenario.accumulation_steps = split.passes, pass = split.pass;
  } else {
    pass = static_cast<int>(read_pass(batch_per_gpu, in.optional("accumulation_steps"), scenario));
  }
  if (measured && pass != trace->batches.front().batch)
    batch_per_gpu.fail(
        fmt::format("found {} images a pass, but the \"measured\" step is of {}", pass, trace->batches.front().batch));
  choose_entries(batch_per_gpu, pass, scenario);
  if (auto dataset = in.optional("dataset")) scenario.dataset = read_dataset(*dataset);
  read_stages(in, scenario);
  read_target(in, scenario, fingerprint, cache, recipe ? &*recipe : nullptr);
  in.finish();
}

}  // namespace ganymede::sim
