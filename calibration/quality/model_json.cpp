// A model of quality as a file, `ganymede.quality-model/1`.

#include <fmt/format.h>

#include <algorithm>

#include "calibration/quality/model.hpp"
#include "common/embedded.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::calibration {
namespace {

using ModelJson = OrderedJson;

constexpr double kLargestLog = 1e3;
constexpr const char* kWholeModel[] = {"all", "batch"};

/// To six digits, which is more than is known.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

std::string factor_name(std::size_t factor) {
  return factor < kQualityFactors ? kQualityFactorNames.at(factor) : kWholeModel[factor - kQualityFactors];
}

std::vector<std::string> factor_names() {
  std::vector<std::string> names(kQualityFactorNames.begin(), kQualityFactorNames.end());
  names.insert(names.end(), std::begin(kWholeModel), std::end(kWholeModel));
  return names;
}

std::size_t read_factor(const JsonNode& node) {
  const std::vector<std::string> names = factor_names();
  const std::string name = node.as_choice(names);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

ModelJson shape_json(const Shape& shape) {
  ModelJson out = ModelJson::array();
  for (const double value : shape) out.push_back(rounded(value));
  return out;
}

Shape read_shape(const JsonNode& node, double low = -kLargestLog) {
  const std::vector<double> values = node.as_numbers(low, kLargestLog);
  if (values.size() != kShapeSize) node.expected("four numbers: of floor, drop, half and slope");
  Shape out{};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

QualityKind read_kind(JsonObject& in) {
  QualityKind kind;
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    if (const auto level = in.optional(kQualityFactorNames.at(f))) kind.levels.at(f) = level->as_string();
  if (const auto batch = in.optional("batch")) kind.batch = batch->as_number(1, 1e9);
  return kind;
}

void read_effects(const JsonNode& node, QualityModel& model) {
  for (const JsonNode& item : node.as_array()) {
    JsonObject in(item);
    QualityEffect& effect = model.effects.emplace_back();
    effect.factor = read_factor(in.required("factor"));
    effect.level = in.required("level").as_string();
    effect.value = read_shape(in.required("value"));
    effect.sd = read_shape(in.required("sd"), 0);
    const JsonNode hazard = in.required("ln_hazard");
    const std::vector<double> pair = hazard.as_numbers(-kLargestLog, kLargestLog);
    if (pair.size() != 2) hazard.expected("two numbers: value and standard deviation");
    effect.hazard = pair[0], effect.hazard_sd = pair[1];
    in.finish();
  }
  if (model.effects.empty() || model.effects[0].factor != kOfAll) node.expected("the effect of \"all\" first");
}

void read_runs(const JsonNode& node, QualityModel& model) {
  for (const JsonNode& item : node.as_array()) {
    JsonObject in(item);
    FittedRun& run = model.runs.emplace_back();
    run.name = in.required("run").as_string();
    run.kind = read_kind(in);
    run.best_fid = in.required("best_fid").as_number(1e-9, 1e9);
    run.log_time = in.required("ln_images").as_number(0, kLargestLog);
    run.diverged = in.required("diverged").as_bool();
    in.finish();
  }
}

void read_spread(const JsonNode& node, QualityModel& model) {
  const std::vector<JsonNode> rows = node.as_array();
  if (rows.size() != kShapeSize) node.expected("four rows");
  for (std::size_t i = 0; i < kShapeSize; ++i) {
    const Shape row = read_shape(rows[i]);
    for (std::size_t j = 0; j < kShapeSize; ++j) model.spread.at(i, j) = row.at(j);
  }
  // Positive definite with room for the covariances that are added; checked by the leading minors of a Cholesky factor.
  Matrix lower(kShapeSize);
  for (std::size_t j = 0; j < kShapeSize; ++j)
    for (std::size_t i = j; i < kShapeSize; ++i) {
      double sum = model.spread.at(i, j);
      if (model.spread.at(i, j) != model.spread.at(j, i)) node.expected("a symmetric matrix");
      for (std::size_t k = 0; k < j; ++k) sum -= lower.at(i, k) * lower.at(j, k);
      if (i == j && !(sum > 0)) node.expected("a positive definite matrix");
      lower.at(i, j) = i == j ? std::sqrt(sum) : sum / lower.at(j, j);
    }
}

}  // namespace

QualityModel read_quality_model(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, kQualityModelSchema);
  QualityModel model;
  model.name = root.file();
  for (const JsonNode& source : in.required("sources").as_array()) model.sources.push_back(source.as_string());
  in.optional("shape");
  read_effects(in.required("effects"), model);
  JsonObject variances(in.required("effect_variance"));
  for (std::size_t f = 0; f < model.effect_variance.size(); ++f)
    model.effect_variance.at(f) = read_shape(variances.required(factor_name(f)), 1e-12);
  variances.finish();
  read_spread(in.required("spread"), model);
  model.noise = in.required("noise").as_number(1e-12, 10);
  model.best = in.required("best").as_number(-100, 100);
  model.drift = in.required("drift").as_number(0, 1e3);
  model.rises = static_cast<int>(in.required("rises").as_integer(0, 1 << 30));
  model.recovered = static_cast<int>(in.required("recovered").as_integer(0, model.rises));
  read_runs(in.required("runs"), model);
  in.finish();
  return model;
}

std::string write_quality_model(const QualityModel& model) {
  ModelJson out = {{"schema", kQualityModelSchema}, {"sources", model.sources}, {"shape", kShapeNames}};
  ModelJson& effects = out["effects"] = ModelJson::array();
  for (const QualityEffect& effect : model.effects)
    effects.push_back({{"factor", factor_name(effect.factor)},
                       {"level", effect.level},
                       {"value", shape_json(effect.value)},
                       {"sd", shape_json(effect.sd)},
                       {"ln_hazard", {rounded(effect.hazard), rounded(effect.hazard_sd)}}});
  for (std::size_t f = 0; f < model.effect_variance.size(); ++f)
    out["effect_variance"][factor_name(f)] = shape_json(model.effect_variance.at(f));
  ModelJson& spread = out["spread"] = ModelJson::array();
  for (std::size_t i = 0; i < kShapeSize; ++i) {
    Shape row{};
    for (std::size_t j = 0; j < kShapeSize; ++j) row.at(j) = model.spread.at(i, j);
    spread.push_back(shape_json(row));
  }
  out["noise"] = rounded(model.noise);
  out["best"] = rounded(model.best);
  out["drift"] = model.drift;
  out["rises"] = model.rises;
  out["recovered"] = model.recovered;
  ModelJson& runs = out["runs"] = ModelJson::array();
  for (const FittedRun& run : model.runs) {
    ModelJson& entry = runs.emplace_back(ModelJson{{"run", run.name}});
    for (std::size_t f = 0; f < kQualityFactors; ++f)
      if (!run.kind.levels.at(f).empty()) entry[kQualityFactorNames.at(f)] = run.kind.levels.at(f);
    if (run.kind.batch > 0) entry["batch"] = run.kind.batch;
    entry["best_fid"] = run.best_fid;
    entry["ln_images"] = rounded(run.log_time);
    entry["diverged"] = run.diverged;
  }
  // One line for each effect and each run.
  std::string text = "{";
  for (const auto& [key, value] : out.items()) {
    text += (text.size() > 1 ? ",\n " : "\n ") + ModelJson(key).dump() + ": ";
    const bool lines = value.is_array() && !value.empty() && value[0].is_structured();
    if (!lines) {
      text += value.dump();
      continue;
    }
    text += "[";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i > 0 ? ",\n  " : "\n  ") + value[i].dump();
    text += "]";
  }
  return text + "}\n";
}

const QualityModel& embedded_quality_model() {
  static const QualityModel model = [] {
    const EmbeddedText& text = embedded_quality().front();
    return read_quality_model(JsonNode::parse(text.text, std::string(text.name)));
  }();
  return model;
}

QualityModel load_quality_model(const std::filesystem::path& path) {
  return path.empty() ? embedded_quality_model() : read_quality_model(JsonNode::load(path));
}

}  // namespace ganymede::calibration
