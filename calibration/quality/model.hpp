#pragma once
// The model of FID against images before a training begins: a `ganymede.quality-model/1`, which was fitted to
// recorded trainings (fit.hpp). The shape of a training is normally distributed about the sum of the effects of its
// kind; effects of a level that no training had are as uncertain as the known ones differ.

#include <filesystem>
#include <string>
#include <vector>

#include "calibration/quality/shape.hpp"
#include "common/json_fwd.hpp"

namespace ganymede::calibration {

/// The properties that tell kinds of trainings apart, beside the batch. `dataset` holds the reference too, because FIDs
/// against different references cannot be compared.
inline constexpr std::size_t kQualityFactors = 6;
inline constexpr std::array<const char*, kQualityFactors> kQualityFactorNames = {"dataset", "backbone", "conditioning",
                                                                                 "loss",    "diffaug",  "ada"};
inline constexpr std::size_t kDatasetFactor = 0;

struct QualityKind {
  std::array<std::string, kQualityFactors> levels;  ///< empty: not known
  double batch = 0;                                 ///< images of one update, accumulation included; 0: not known
  int pixels = 0;                                   ///< of an image's side; 0: not known
};

/// The level of the factor `dataset`, for example "CIFAR10 (test 10000)".
std::string dataset_level(const std::string& dataset, const std::string& reference);

struct FittedRun {
  std::string name;
  QualityKind kind;
  double best_fid = 0;
  double log_time = 0;    ///< ln of its images over kFirstImages, until it diverged or ended
  bool diverged = false;  ///< ended above kDivergedAbove times its best FID
};

/// Images before which no training is expected to diverge.
inline constexpr double kFirstImages = 1e5;
inline constexpr double kDivergedAbove = 1.5;
/// The batch at which the effect of the batch is 0.
inline constexpr double kUsualBatch = 128;

/// An effect on the shape and on the hazard of divergence.
struct QualityEffect {
  std::size_t factor = 0;  ///< an index into kQualityFactorNames, or kOfAll or kOfBatch
  std::string level;
  Shape value{}, sd{};
  double hazard = 0, hazard_sd = 0;
};
inline constexpr std::size_t kOfAll = kQualityFactors, kOfBatch = kQualityFactors + 1;

struct QualityModel {
  std::string name;                                          ///< the file, for messages
  std::vector<std::string> sources;                          ///< of the trainings
  std::vector<QualityEffect> effects;                        ///< of all, of ln(batch / kUsualBatch), and of each level
  std::array<Shape, kQualityFactors + 2> effect_variance{};  ///< by factor: of the effects about 0
  Matrix spread{kShapeSize};                                 ///< of trainings of one kind
  double noise = 0;  ///< variance of a point's ln FID about its training's curve, median over the trainings
  double best = 0;   ///< ln of the best FID of a training less its curve's there, in standard deviations of the noise
  /// Standard deviation of ln FID off the curve that points foretell, for each square root of an e-fold of the images
  /// after them: the curve is not exactly of this shape (drift.cpp).
  double drift = 0;
  int rises = 0, recovered = 0;  ///< how often FID rose above kDivergedAbove times the best; and fell below that again
  std::vector<FittedRun> runs;

  /// The row of the design matrix: 1, ln(batch / kUsualBatch), and 1 for each level of the kind. An unknown batch
  /// counts as the usual one.
  std::vector<double> design(const QualityKind& kind) const;
  /// The factors of the kind whose level has no effect in the model.
  std::vector<std::size_t> unknown(const QualityKind& kind) const;
  /// The lowest FID that any run of this dataset and reference reached; 0 if there is none.
  double best_of(const std::string& dataset_level) const;
};

/// The prior precision of the effects of one member of the shape: the inverse of effect_variance.
std::vector<double> effect_precision(const QualityModel& model, std::size_t member);
/// Variance of an effect on the hazard's logarithm, and of its mean over all trainings; an assumption: kinds differ by
/// a factor of three or so.
inline constexpr double kHazardVariance = 1, kHazardMeanVariance = 100, kHazardMean = -3;
std::vector<double> hazard_precision(const QualityModel& model);

/// The covariance with these variances whose correlations are those of `like`.
Matrix with_variances(const Matrix& like, const Shape& variances);

/// The expectation of a training of this kind.
struct QualityPrior {
  ShapePrior shape;
  double log_hazard = 0, log_hazard_sd = 0;  ///< of ln(divergences per e-fold of the images)
  double log_lasted = 0;  ///< e-folds of the images that a training of the kind is known to have gone without one
};
QualityPrior prior_of(const QualityModel& model, const QualityKind& kind);

inline constexpr const char* kQualityModelSchema = "ganymede.quality-model/1";
QualityModel read_quality_model(const JsonNode& root);
std::string write_quality_model(const QualityModel& model);
/// The model that comes with the program.
const QualityModel& embedded_quality_model();
/// The model of a file; the embedded one if `path` is empty.
QualityModel load_quality_model(const std::filesystem::path& path);

/// The kind of recorded trainings that stands for one of networks that the model has none of: StyleGAN3's count as
/// StyleGAN2's. Its published FIDs are 7 % below to 14 % above StyleGAN3's on FFHQ, FFHQ-U of two sizes and AFHQv2
/// (published.cpp), and backbones differ by more than a factor of two.
QualityKind recorded_kind(const QualityModel& model, QualityKind kind);

/// The same kind with the levels of all factors but the dataset in lower case, in which they are compared.
QualityKind with_usual_case(QualityKind kind);

/// The levels of a model that the program can train or plan: { "dcgan", "no", "vanilla" } for "dcgan-64".
QualityKind kind_of_model(const std::string& model);

}  // namespace ganymede::calibration
