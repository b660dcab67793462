#include "calibration/quality/model.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "calibration/quality/foreign.hpp"
#include "common/plain_text.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

/// Variance of ln(batch / kUsualBatch) among trainings whose batch is not stated: that of the recorded ones.
constexpr double kBatchVariance = 1.5;

const QualityEffect* effect_of(const QualityModel& model, std::size_t factor, const std::string& level) {
  for (const QualityEffect& effect : model.effects)
    if (effect.factor == factor && effect.level == level) return &effect;
  return nullptr;
}

struct ModelFamily {
  const char* prefix;  ///< of the model's name
  const char *backbone, *conditioning, *loss, *ada;
};
/// Defaults of this program's models, and of the published networks whose layers it lists, as their papers train them.
constexpr ModelFamily kFamilies[] = {{"dcgan", "dcgan", "no", "vanilla", "0"},
                                     {"stylegan2-ada", "stylegan2", "no", "logistic", "1"},
                                     {"stylegan2", "stylegan2", "no", "logistic", "0"},
                                     {"stylegan3-r", "stylegan3-r", "no", "logistic", ""},  // with ADA but for FFHQ
                                     {"stylegan3", "stylegan3-t", "no", "logistic", ""},
                                     {"biggan-deep", "big_resnet_deep", "projgan", "hinge", "0"},
                                     {"biggan", "big_resnet", "projgan", "hinge", "0"},
                                     {"sngan", "resnet", "no", "hinge", "0"},
                                     {"sagan", "resnet", "projgan", "hinge", "0"},
                                     {"wgan-gp", "resnet", "no", "wasserstein", "0"},
                                     {"progressive-gan", "progressive", "no", "wasserstein", "0"},
                                     {"progan", "progressive", "no", "wasserstein", "0"},
                                     {"mlp-gan", "mlp", "no", "vanilla", "0"}};

}  // namespace

std::string dataset_level(const std::string& dataset, const std::string& reference) {
  if (dataset.empty() && reference.empty()) return "";
  return fmt::format("{} ({})", dataset.empty() ? "unstated" : dataset, reference.empty() ? "unstated" : reference);
}

std::vector<double> QualityModel::design(const QualityKind& kind) const {
  std::vector<double> row(effects.size());
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const QualityEffect& effect = effects[i];
    if (effect.factor == kOfAll)
      row[i] = 1;
    else if (effect.factor == kOfBatch)
      row[i] = kind.batch > 0 ? portable_log(kind.batch / kUsualBatch) : 0;
    else
      row[i] = kind.levels.at(effect.factor) == effect.level ? 1 : 0;
  }
  return row;
}

std::vector<std::size_t> QualityModel::unknown(const QualityKind& kind) const {
  std::vector<std::size_t> out;
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    if (!effect_of(*this, f, kind.levels.at(f))) out.push_back(f);
  return out;
}

double QualityModel::best_of(const std::string& dataset) const {
  double lowest = 0;
  for (const FittedRun& run : runs)
    if (run.kind.levels[kDatasetFactor] == dataset && (lowest == 0 || run.best_fid < lowest)) lowest = run.best_fid;
  return lowest;
}

std::vector<double> effect_precision(const QualityModel& model, std::size_t member) {
  std::vector<double> out;
  for (const QualityEffect& effect : model.effects)
    out.push_back(1 / model.effect_variance.at(effect.factor).at(member));
  return out;
}

std::vector<double> hazard_precision(const QualityModel& model) {
  std::vector<double> out;
  for (const QualityEffect& effect : model.effects)
    out.push_back(1 / (effect.factor == kOfAll ? kHazardMeanVariance : kHazardVariance));
  return out;
}

Matrix with_variances(const Matrix& like, const Shape& variances) {
  Matrix out(kShapeSize);
  for (std::size_t i = 0; i < kShapeSize; ++i)
    for (std::size_t j = 0; j < kShapeSize; ++j)
      out.at(i, j) = like.at(i, j) * std::sqrt(variances.at(i) * variances.at(j) / (like.at(i, i) * like.at(j, j)));
  return out;
}

QualityPrior prior_of(const QualityModel& model, const QualityKind& kind) {
  QualityPrior out;
  const std::vector<double> row = model.design(kind);
  std::vector<std::vector<double>> rows;
  for (const FittedRun& run : model.runs) rows.push_back(model.design(run.kind));
  const std::vector<std::size_t> unknown = model.unknown(kind);
  Shape variances{};
  for (std::size_t d = 0; d < kShapeSize; ++d) {
    Matrix precision = Matrix::diagonal(effect_precision(model, d));
    for (const auto& of_run : rows) precision.add_outer(of_run, 1 / model.spread.at(d, d));
    double variance = model.spread.at(d, d) + (row.empty() ? 0 : inverse(precision).form(row));
    for (const std::size_t factor : unknown) variance += model.effect_variance.at(factor).at(d);
    for (std::size_t i = 0; i < row.size(); ++i) {
      out.shape.mean.at(d) += row[i] * model.effects[i].value.at(d);
      if (model.effects[i].factor == kOfBatch && kind.batch <= 0)
        variance += kBatchVariance * model.effects[i].value.at(d) * model.effects[i].value.at(d);
    }
    variances.at(d) = variance;
  }
  // The part of the kind that is not known is taken as correlated like trainings of one kind: a lower floor with a
  // later half.
  out.shape.covariance = with_variances(model.spread, variances);
  Matrix precision = Matrix::diagonal(hazard_precision(model));
  const auto log_hazard = [&](const std::vector<double>& of) {
    double sum = 0;
    for (std::size_t i = 0; i < of.size(); ++i) sum += of[i] * model.effects[i].hazard;
    return sum;
  };
  for (std::size_t r = 0; r < rows.size(); ++r)
    precision.add_outer(rows[r], model.runs[r].log_time * portable_exp(log_hazard(rows[r])));
  out.log_hazard = log_hazard(row);
  out.log_hazard_sd = std::sqrt(inverse(precision).form(row) + kHazardVariance * static_cast<double>(unknown.size()));
  return out;
}

QualityKind recorded_kind(const QualityModel& model, QualityKind kind) {
  constexpr std::size_t kBackbone = 1;
  std::string& backbone = kind.levels[kBackbone];
  const std::string stands = "stylegan2";
  if (backbone.starts_with("stylegan3") && !effect_of(model, kBackbone, backbone) &&
      effect_of(model, kBackbone, stands))
    backbone = stands;
  return kind;
}

QualityKind with_usual_case(QualityKind kind) {
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    if (f != kDatasetFactor)
      for (char& c : kind.levels.at(f)) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kind;
}

QualityKind kind_of_model(const std::string& model) {
  QualityKind kind;
  for (const ModelFamily& family : kFamilies)
    if (model.starts_with(family.prefix)) {
      kind.levels = {"", family.backbone, family.conditioning, family.loss, "0", family.ada};
      break;
    }
  // A recipe's name ends with the size of its images where that is not its usual one.
  const std::size_t dash = model.rfind('-');
  if (dash != std::string::npos) std::from_chars(model.data() + dash + 1, model.data() + model.size(), kind.pixels);
  return kind;
}

std::string why_no_forecast(const std::string& model, const std::string& curve) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"cyclegan", "images into images"}, {"srgan", "images into images"}, {"pix2pix", "images into images"},
      {"spade", "images into images"},    {"vqgan", "images into images"}, {"hifi-gan", "spectra into sound"}};
  const std::string name = lower_case(model);  // "esrgan" and "real-esrgan" have "srgan" in them
  for (const auto& [part, turns] : kOthers)
    if (name.find(part) != std::string::npos)
      return fmt::format(
          "{} turns {}, and the recorded trainings that forecasts are from all make images from noise; expected a "
          "model such as dcgan-64, or {} of such trainings",
          model, turns, curve);
  return "";
}

}  // namespace ganymede::calibration
