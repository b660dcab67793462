#include "calibration/quality/published.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <limits>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

struct Row {
  const char *backbone, *ada, *dataset;
  int pixels;
  double images, fid;
};

/// FIDs of 50,000 images, as GaParmar/clean-fid's README.md quotes them from their papers. StyleGAN2's (Karras et al.
/// 2020) take 25M images of FFHQ, 88M of LSUN's churches and cats and 100M of its horses by the commands of
/// NVlabs/stylegan2's README.md; those at 256 pixels and with ADA (Karras et al. 2020, "Limited Data") take the 25M of
/// the paper configurations in NVlabs/stylegan2-ada's train.py.
/// Trainings of small sets without ADA diverge long before, so these are not here.
constexpr Row kRows[] = {
    {"stylegan2", "0", "ffhq", 1024, 25e6, 2.84},    {"stylegan2", "0", "ffhq", 256, 25e6, 3.66},
    {"stylegan2", "1", "ffhq", 256, 25e6, 3.88},     {"stylegan2", "0", "lsunchurch", 256, 88e6, 3.86},
    {"stylegan2", "0", "lsuncat", 256, 88e6, 6.93},  {"stylegan2", "0", "lsunhorse", 256, 100e6, 3.43},
    {"stylegan2", "1", "afhqcat", 512, 25e6, 3.55},  {"stylegan2", "1", "afhqdog", 512, 25e6, 7.40},
    {"stylegan2", "1", "afhqwild", 512, 25e6, 3.05}, {"stylegan2", "1", "metfaces", 1024, 25e6, 18.22},
    {"stylegan2", "1", "brecahad", 512, 25e6, 15.71}};

struct Dataset {
  std::string name;  ///< lower-case letters alone: "FFHQ-256 (unstated)" is "ffhq"
  int pixels = 0;    ///< the number behind the letters; 0: none
  bool comparable = false;
};

Dataset dataset_of(const std::string& level) {
  Dataset out;
  const std::size_t end = level.rfind(" (");
  const std::string reference = end == std::string::npos ? "" : level.substr(end + 2);
  out.comparable = reference.starts_with("unstated") || reference.starts_with("train");
  for (const char c : level.substr(0, end)) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      out.name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isdigit(static_cast<unsigned char>(c))) out.pixels = std::min(10 * out.pixels + (c - '0'), 1 << 20);
  }
  return out;
}

}  // namespace

std::optional<PublishedTraining> published_training(const QualityKind& kind) {
  constexpr std::size_t kBackbone = 1, kAda = 5;
  constexpr double kLeastBatch = 16, kMostBatch = 128;  // within a factor of two of theirs, which are 32 and 64
  if (kind.batch > 0 && (kind.batch < kLeastBatch || kind.batch > kMostBatch)) return std::nullopt;
  const Dataset asked = dataset_of(kind.levels[kDatasetFactor]);
  const double pixels = asked.pixels > 0 ? asked.pixels : kind.pixels > 0 ? kind.pixels : 1024;
  const Row* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Row& row : kRows) {
    if (!asked.comparable || asked.name != row.dataset || kind.levels[kBackbone] != row.backbone) continue;
    if (!kind.levels[kAda].empty() && kind.levels[kAda] != row.ada) continue;
    const double apart = std::abs(portable_log(pixels / row.pixels));
    if (apart < least) least = apart, nearest = &row;
  }
  if (!nearest) return std::nullopt;
  return PublishedTraining{
      nearest->images, nearest->fid,
      fmt::format("a published training of {} on {} at {} pixels{} got to an FID of {:g} within {:g} million images "
                  "(its paper, quoted by GaParmar/clean-fid)",
                  nearest->backbone, nearest->dataset, nearest->pixels, *nearest->ada == '1' ? " with ADA" : "",
                  nearest->fid, nearest->images / 1e6)};
}

QualityPrior with_published(const QualityModel& model, QualityPrior prior, const PublishedTraining& published) {
  SeenCurve seen;
  seen.add(published.images, published.fid * portable_exp(-std::sqrt(model.noise) * model.best));
  const ShapeFit fit = fit_shape(seen, prior.shape, model.noise, prior.shape.mean);
  // The share of what is not known of the floor that another training of the kind has, too.
  const double shared = std::max(0.0, 1 - model.spread.at(0, 0) / prior.shape.covariance.at(0, 0));
  for (std::size_t i = 0; i < kShapeSize; ++i) {
    prior.shape.mean.at(i) += shared * (fit.shape.at(i) - prior.shape.mean.at(i));
    for (std::size_t j = 0; j < kShapeSize; ++j)
      prior.shape.covariance.at(i, j) -= shared * shared * (prior.shape.covariance.at(i, j) - fit.covariance.at(i, j));
  }
  prior.log_lasted = portable_log(published.images / kFirstImages);
  return prior;
}

}  // namespace ganymede::calibration
