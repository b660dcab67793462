// A model of quality as a file, `ganymede.quality-model/1`.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "calibration/quality/model.hpp"
#include "common/embedded.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::calibration {
namespace {

using documents::About;
using documents::Walk;

constexpr double kLargestLog = 1e3;
constexpr const char* kShapeNumbers = "four numbers: of floor, drop, half and slope";

const std::vector<std::string>& factor_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(kQualityFactorNames.begin(), kQualityFactorNames.end());
    all.insert(all.end(), {"all", "batch"});  // kOfAll and kOfBatch
    return all;
  }();
  return names;
}

/// To six digits, which is more than is known.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

/// A number that is written to six digits.
void describe_rounded(Walk& walk, std::string_view name, double& value, const About& about) {
  double shown = walk.reads() ? value : rounded(value);
  walk.member(name, shown, about);
  if (walk.reads()) value = shown;
}

/// So many such numbers, of which `expected` says how many and what they are.
template <std::size_t count>
void describe_numbers(Walk& walk, std::string_view name, std::array<double, count>& values, const char* expected,
                      double low = -kLargestLog) {
  std::vector<double> shown;
  for (const double value : values) shown.push_back(walk.reads() ? value : rounded(value));
  walk.member(name, shown, {.low = low, .high = kLargestLog, .required = true});
  if (!walk.reads()) return;
  if (shown.size() != count) walk.expect(name, expected);
  std::copy(shown.begin(), shown.end(), values.begin());
}

void describe_spread(Walk& walk, Matrix& spread) {
  std::vector<std::vector<double>> rows(kShapeSize, std::vector<double>(kShapeSize));
  for (std::size_t i = 0; i < kShapeSize; ++i)
    for (std::size_t j = 0; j < kShapeSize && !walk.reads(); ++j) rows[i][j] = rounded(spread.at(i, j));
  walk.member("spread", rows, {.low = -kLargestLog, .high = kLargestLog, .required = true});
  if (!walk.reads()) return;
  if (rows.size() != kShapeSize) walk.expect("spread", "four rows");
  for (std::size_t i = 0; i < kShapeSize; ++i) {
    if (rows[i].size() != kShapeSize) walk.expect(fmt::format("spread/{}", i), kShapeNumbers);
    for (std::size_t j = 0; j < kShapeSize; ++j) spread.at(i, j) = rows[i][j];
  }
  // Positive definite with room for the covariances that are added; checked by the leading minors of a Cholesky factor.
  Matrix lower(kShapeSize);
  for (std::size_t j = 0; j < kShapeSize; ++j)
    for (std::size_t i = j; i < kShapeSize; ++i) {
      double sum = spread.at(i, j);
      if (spread.at(i, j) != spread.at(j, i)) walk.expect("spread", "a symmetric matrix");
      for (std::size_t k = 0; k < j; ++k) sum -= lower.at(i, k) * lower.at(j, k);
      if (i == j && !(sum > 0)) walk.expect("spread", "a positive definite matrix");
      lower.at(i, j) = i == j ? std::sqrt(sum) : sum / lower.at(j, j);
    }
}

}  // namespace

void describe(Walk& walk, QualityEffect& effect) {
  walk.one_of("factor", effect.factor, factor_names(), documents::kRequired);
  walk.member("level", effect.level, documents::kText);
  describe_numbers(walk, "value", effect.value, kShapeNumbers);
  describe_numbers(walk, "sd", effect.sd, kShapeNumbers, 0);
  std::array<double, 2> hazard = {effect.hazard, effect.hazard_sd};
  describe_numbers(walk, "ln_hazard", hazard, "two numbers: value and standard deviation");
  if (walk.reads()) effect.hazard = hazard[0], effect.hazard_sd = hazard[1];
}

void describe(Walk& walk, FittedRun& run) {
  walk.member("run", run.name, documents::kText);
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    walk.member_unless(kQualityFactorNames.at(f), run.kind.levels.at(f), std::string(), {.filled = true});
  walk.member_unless("batch", run.kind.batch, 0.0, {.low = 1, .high = 1e9});
  walk.member("best_fid", run.best_fid, {.low = 1e-9, .high = 1e9, .required = true});
  describe_rounded(walk, "ln_images", run.log_time, {.low = 0, .high = kLargestLog, .required = true});
  walk.member("diverged", run.diverged, documents::kRequired);
}

void describe(Walk& walk, QualityModel& model) {
  walk.constant("schema", kQualityModelSchema, documents::kRequired);
  walk.member("sources", model.sources, documents::kText);
  walk.constant("shape", kShapeNames);
  walk.member("effects", model.effects, documents::kRequired);
  if (walk.reads() && (model.effects.empty() || model.effects[0].factor != kOfAll))
    walk.expect("effects", "the effect of \"all\" first");
  const auto variances = [&] {
    for (std::size_t f = 0; f < model.effect_variance.size(); ++f)
      describe_numbers(walk, factor_names()[f], model.effect_variance.at(f), kShapeNumbers, 1e-12);
  };
  walk.object("effect_variance", variances, documents::kRequired);
  describe_spread(walk, model.spread);
  describe_rounded(walk, "noise", model.noise, {.low = 1e-12, .high = 10, .required = true});
  describe_rounded(walk, "best", model.best, {.low = -100, .high = 100, .required = true});
  walk.member("drift", model.drift, {.low = 0, .high = 1e3, .required = true});
  walk.member("rises", model.rises, {.low = 0, .high = 1 << 30, .required = true});
  walk.member("recovered", model.recovered, {.low = 0, .high = static_cast<double>(model.rises), .required = true});
  walk.member("runs", model.runs, documents::kRequired);
}

QualityModel read_quality_model(const JsonNode& root) {
  JsonObject head(root);
  check_schema(head, kQualityModelSchema);
  QualityModel model;
  model.name = root.file();
  documents::read(root, documents::described(model));
  return model;
}

std::string write_quality_model(const QualityModel& model) {
  const OrderedJson out = documents::written(documents::described(model));
  // One line for each effect and each run.
  std::string text = "{";
  for (const auto& [key, value] : out.items()) {
    text += (text.size() > 1 ? ",\n " : "\n ") + OrderedJson(key).dump() + ": ";
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
