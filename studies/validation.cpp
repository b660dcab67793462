#include "studies/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "calibration/quality/goal.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "sim/scenario/scenario.hpp"
#include "studies/shard_folder.hpp"

namespace ganymede::studies {
namespace {

std::vector<std::string> read_tags(JsonObject& in) {
  std::vector<std::string> tags;
  if (auto list = in.optional("tags"))
    for (const JsonNode& tag : list->as_array()) tags.push_back(tag.as_string());
  return tags;
}

/// Reads a scenario, or { "like": NAME, "set": { "/pointer": value } }: the scenario NAME with some values replaced.
JsonNode read_run(const JsonNode& node, const std::vector<std::pair<std::string, JsonNode>>& before) {
  if (!node.is_object() || !node.value().contains("like")) return node;
  JsonObject in(node);
  const JsonNode like = in.required("like");
  const auto base = std::find_if(before.begin(), before.end(),
                                 [name = like.as_string()](const auto& run) { return run.first == name; });
  if (base == before.end()) like.expected("the name of a run that sorts before this one");
  Json scenario = base->second.value();
  if (auto set = in.optional("set"))
    for (const auto& [pointer, value] : set->as_map()) {
      try {
        scenario[JsonPointer(pointer)] = value.value();
      } catch (const JsonError&) {
        value.fail("expected a JSON pointer into the scenario as its key");
      }
    }
  in.finish();
  return JsonNode::wrap(std::move(scenario), node.file() + ": " + node.pointer(), node.directory());
}

/// Reads the place of a value in a result into a cell or a claim.
void read_pointer(const JsonNode& node, auto& out) {
  try {
    out.value = JsonPointer(node.as_string()).to_string();
    out.place = fmt::format("{}: {}", node.file(), node.pointer());
  } catch (const JsonError&) {
    node.expected("a JSON pointer into a result, such as \"/time/total_s\"");
  }
}

/// The names of what cells and claims may be about.
std::vector<std::string> names_of_runs(const Validation& validation) {
  std::vector<std::string> names;
  for (const auto& run : validation.runs) names.push_back(run.first);
  for (const StudyAnswer& answer : validation.answers) names.push_back(answer.name);
  return names;
}

/// Whence the cell's prediction comes.
void read_source(JsonObject& in, const Validation& validation, RunCell& cell) {
  std::vector<std::string> cells;
  for (const RunCell& other : validation.run_cells)
    if (other.role == CellRole::fit || other.role == CellRole::predict) cells.push_back(other.what);
  cell.run = in.required("run").as_choice(names_of_runs(validation));
  read_pointer(in.required("value"), cell);
  if (auto scale = in.optional("scale")) cell.scale = scale->as_number(1e-12, 1e12);
  if (auto error = in.optional("error")) cell.error = error->as_number(0, 10);
  if (auto anchor = in.optional("anchor")) cell.anchor = anchor->as_choice(cells);
  if (auto baselines = in.optional("baselines"))
    for (const auto& [name, factor] : baselines->as_map()) {
      if (cell.anchor.empty()) factor.fail("a baseline is a multiple of the anchor's measurement, and there is none");
      cell.baselines.emplace_back(name, factor.as_number(1e-6, 1e6));
    }
}

RunCell read_cell(const JsonNode& node, const Validation& validation) {
  JsonObject in(node);
  RunCell cell;
  cell.what = in.required("what").as_string();
  cell.unit = in.required("unit").as_string();
  const std::string role = in.required("role").as_choice({"fit", "predict", "shown", "none"});
  cell.role = role == "fit"       ? CellRole::fit
              : role == "predict" ? CellRole::predict
              : role == "shown"   ? CellRole::shown
                                  : CellRole::none;
  if (auto quantity = in.optional("quantity")) cell.quantity = quantity->as_choice(cell_quantities());
  if (cell.role == CellRole::none)
    cell.because = in.required("because").as_string();
  else
    read_source(in, validation, cell);
  if (cell.role != CellRole::shown) cell.measured = in.required("measured").as_number(1e-12, 1e12);
  cell.tags = read_tags(in);
  in.finish();
  return cell;
}

/// Reads an order of two or more different runs: one that compares a scenario with itself tests nothing.
OrderClaim read_claim(const JsonNode& node, const Validation& validation) {
  JsonObject in(node);
  OrderClaim claim;
  claim.text = in.required("text").as_string();
  read_pointer(in.required("value"), claim);
  if (auto expected = in.optional("expected")) claim.expected = expected->as_choice({"holds", "fails"}) == "holds";
  const JsonNode falls = in.required("falls");
  for (const JsonNode& run : falls.as_array()) {
    claim.runs.push_back(run.as_choice(names_of_runs(validation)));
    const auto content = [&](const std::string& name) {
      const auto found = std::find_if(validation.runs.begin(), validation.runs.end(),
                                      [&](const auto& other) { return other.first == name; });
      return found == validation.runs.end() ? Json(name) : found->second.value();
    };
    for (auto before = claim.runs.begin(); before + 1 != claim.runs.end(); ++before)
      if (content(*before) == content(claim.runs.back()))
        run.fail(fmt::format("is the same run as \"{}\": a claim that compares a number with itself tests nothing",
                             *before));
  }
  if (claim.runs.size() < 2) falls.expected("two runs or more");
  in.finish();
  return claim;
}

/// Reads { "command": …, "data": …, "result": what the command printed }, and what a longer training would be.
StudyAnswer read_training(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  in.required("command").as_string();
  in.required("data").as_string();
  if (auto full = in.optional("full_steps"))
    full->as_integer(1, 1'000'000'000);  // for tools/reproduce.sh, as is the next
  if (auto dataset = in.optional("dataset")) dataset->as_choice({"mnist", "cifar-10"});
  JsonNode result = in.required("result");
  result.as_map();
  in.finish();
  return {name, "recorded training", std::move(result)};
}

/// Reads what `quality forecast` is asked, and asks it.
StudyAnswer read_forecast(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  const calibration::QualityGoal goal =
      calibration::QualityGoal::read(in.required("goal"), in.required("model").as_string());
  const double batch = in.required("batch").as_number(1, 1e9), images = in.required("images").as_number(1, 1e15);
  in.finish();
  const calibration::QualityInterval best = goal.given({}, "", batch, images).best;
  Json result = {{"best_fid", {{"median", best.median}, {"interval", {best.low, best.high}}}}};
  return {name, "quality forecast", JsonNode::wrap(std::move(result), node.file(), node.directory())};
}

void read_answers(JsonObject& in, Validation& out) {
  for (const char* kind : {"trainings", "forecasts"})
    if (auto list = in.optional(kind))
      for (const auto& [name, node] : list->as_map()) {
        const std::vector<std::string> names = names_of_runs(out);
        if (std::find(names.begin(), names.end(), name) != names.end()) node.fail("has the name of another run");
        out.answers.push_back(kind == std::string_view("trainings") ? read_training(name, node)
                                                                    : read_forecast(name, node));
      }
}

Promise read_promise(const JsonNode& node) {
  JsonObject in(node);
  Promise promise;
  if (auto tag = in.optional("cells")) promise.tag = tag->as_string();
  promise.mean_error = in.required("mean_error").as_number(0, 10);
  if (auto beats = in.optional("beats_baselines")) promise.beats_baselines = beats->as_bool();
  in.finish();
  return promise;
}

FractionTable read_fractions(const JsonNode& node, const Validation& validation) {
  JsonObject in(node);
  FractionTable table;
  table.title = in.required("title").as_string();
  std::vector<std::string> names;
  for (const auto& series : validation.series) names.push_back(series.name());
  table.series = in.required("series").as_choice(names);
  for (const double count : in.required("gpus").as_numbers(1, 65536)) table.gpus.push_back(static_cast<int>(count));
  table.bytes = in.required("bytes").as_numbers(1, 1e12);
  if (auto scheme = in.optional("scheme")) table.scheme = sim::read_scheme(*scheme);
  in.finish();
  return table;
}

/// Workers differ as a fit without this study says, so that its predictions do not know its cells.
void read_variation(const JsonNode& node, std::vector<ScalingSeries>& series) {
  JsonObject in(node);
  for (const bool eager : {true, false}) {
    auto executor = in.optional(eager ? "eager" : "graph");
    if (!executor) continue;
    calibration::WorkerVariation variation = eager ? calibration::kEagerVariation : calibration::kGraphVariation;
    JsonObject members(*executor);
    variation.central = members.required("deviation").as_number(0, 1);
    variation.seconds_per_byte = members.required("per_gigabyte").as_quantity<Seconds>().si / 1e9;
    members.finish();
    for (ScalingSeries& one : series)
      if (one.eager() == eager) one.set_variation(variation);
  }
  in.finish();
}

/// The same for the part of a step that does not depend on its batch.
void read_fixed_step(const JsonNode& node, std::vector<ScalingSeries>& series) {
  JsonObject in(node);
  const double on_v100_s = in.required("on_v100").as_quantity<Seconds>().si;
  const double exponent = in.required("exponent").as_number(0, 2);
  in.finish();
  for (ScalingSeries& one : series) one.set_fixed_step(on_v100_s, exponent);
}

}  // namespace

const std::vector<std::string>& cell_quantities() {
  static const std::vector<std::string> names = {"time", "cost", "utilization", "memory", "quality"};
  return names;
}

Validation read_validation(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, "ganymede.validation/1");
  Validation out;
  out.name = in.required("name").as_string();
  out.title = in.required("title").as_string();
  out.source = in.required("source").as_string();
  for (const JsonNode& item : in.required("assumptions").as_array()) {
    JsonObject assumption(item);
    const std::string what = assumption.required("what").as_string();
    out.assumptions.emplace_back(what, assumption.required("source").as_string());
    assumption.finish();
  }
  if (auto choices = in.optional("informed_choices"))
    for (const JsonNode& choice : choices->as_array()) out.informed_choices.push_back(choice.as_string());
  if (auto totals = in.optional("in_totals")) out.in_totals = totals->as_bool();
  in.optional("machines");  // the series read them
  in.optional("steps");
  if (auto series = in.optional("series"))
    for (const JsonNode& item : series->as_array()) out.series.emplace_back(item, root);
  if (auto variation = in.optional("worker_variation")) read_variation(*variation, out.series);
  if (auto fixed = in.optional("fixed_step")) read_fixed_step(*fixed, out.series);
  if (auto curves = in.optional("collectives")) {
    if (curves->as_array().empty()) curves->expected("at least one curve");
    for (const JsonNode& curve : curves->as_array()) out.curves.emplace_back(curve, root);
  }
  if (auto runs = in.optional("runs"))
    for (const auto& [name, run] : runs->as_map()) out.runs.emplace_back(name, read_run(run, out.runs));
  read_answers(in, out);
  if (auto links = in.optional("links"))
    out.links = links->as_choice({"measured", "datasheet", "assumed", kPlayedNetwork});
  if (auto error = in.optional("run_error")) out.run_error = error->as_number(0, 10);
  if (auto cells = in.optional("cells"))
    for (const JsonNode& cell : cells->as_array()) out.run_cells.push_back(read_cell(cell, out));
  if (auto claims = in.optional("claims"))
    for (const JsonNode& claim : claims->as_array()) out.claims.push_back(read_claim(claim, out));
  if (auto tables = in.optional("compute_fractions"))
    for (const JsonNode& table : tables->as_array()) out.fractions.push_back(read_fractions(table, out));
  if (auto promises = in.optional("promises"))
    for (const JsonNode& promise : promises->as_array()) out.promises.push_back(read_promise(promise));
  in.finish();
  if (out.series.empty() && out.runs.empty() && out.curves.empty() && out.answers.empty())
    root.expected("\"series\", \"collectives\", \"runs\", \"trainings\" or \"forecasts\"");
  return out;
}

void use_rehearsals(const RehearsedLinks& rehearsed, Validation& validation) {
  validation.rehearsed = rehearsed;
  for (ScalingSeries& series : validation.series) series.set_rehearsed(rehearsed);
  for (CollectiveCurve& curve : validation.curves) curve.set_rehearsed(rehearsed);
}

const std::vector<std::string>& validation_names() {
  static const std::vector<std::string> names = names_of(embedded_validations());
  return names;
}

std::string_view embedded_validation(std::string_view name) {
  for (const auto& study : embedded_validations())
    if (study.name == name) return study.text;
  return {};
}

namespace {

JsonNode find_study(const std::string& name) {
  const auto& names = validation_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return JsonNode::parse(embedded_validation(name), name);
  if (name.find('/') != std::string::npos || name.ends_with(".json") || std::filesystem::exists(name))
    return JsonNode::load(name);
  const auto near = nearest(name, names);
  throw ConfigError(fmt::format("there is no study \"{}\"{}; expected a file or {}", name,
                                near ? fmt::format(", did you mean \"{}\"?", *near) : "", list_of(names)));
}

/// Hash of a study, and of the traces and platform files that its scenarios name.
std::string hash_of_study(const JsonNode& document, const Validation& study) {
  std::string content = document.value().dump();
  for (const auto& [run, scenario] : study.runs) content += " " + sim::read_scenario(scenario).hash;
  return fmt::format("{:016x}", fnv1a(content));
}

}  // namespace

AskedValidations read_asked(const std::vector<std::string>& names) {
  AskedValidations asked;
  asked.names = names.empty() ? validation_names() : names;
  std::map<std::string, std::string> seen;  // studies by their content
  for (const std::string& name : asked.names) {
    asked.documents.push_back(find_study(name));
    if (const auto [same, is_new] = seen.emplace(asked.documents.back().value().dump(), name); !is_new)
      throw ConfigError(name == same->second
                            ? fmt::format("the study {} is named twice, expected once", name)
                            : fmt::format("{} and {} are the same study, expected one of them", same->second, name));
    asked.studies.push_back(read_validation(asked.documents.back()));
  }
  return asked;
}

ShardOutcome run_validation_shard(AskedValidations asked, const std::string& program, const Shard& shard,
                                  const std::string& folder, ShardOptions how) {
  ShardedWork work{
      .command = kValidateShards, .program = program, .name = "published measurements", .parts = {}, .seeds = {}};
  for (std::size_t i = 0; i < asked.names.size(); ++i)
    work.parts.push_back({asked.names[i], hash_of_study(asked.documents[i], asked.studies[i])});
  how.use = ChildUse::once;
  return run_shard(work, shard, folder,
                   {.work =
                        [&](std::size_t i) {
                          const auto validated = run_validation(std::move(asked.studies[i]));
                          return row_holding(work, i, Json::parse(documents::validated_study_text(validated)));
                        }},
                   how);
}

RehearsedLinks read_rehearsals(const std::vector<std::string>& files) {
  RehearsedLinks out;
  std::map<std::string, std::string> seen;  // files by their content
  for (const std::string& file : files) {
    const JsonNode study = JsonNode::load(file);
    if (const auto [same, is_new] = seen.emplace(study.value().dump(), file); !is_new)
      throw ConfigError(
          fmt::format("--rehearsed: {} and {} are the same rehearsal, which counts once", same->second, file));
    out.add(run_validation(read_validation(study)), file);
  }
  return out;
}

}  // namespace ganymede::studies
