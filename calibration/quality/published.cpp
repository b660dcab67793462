#include "calibration/quality/published.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "common/plain_text.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

struct Row {
  const char *backbone, *trained;  ///< the level of the model's factor begins `backbone`; `trained` is for the note
  bool classes;                    ///< conditional on classes
  const char *ada, *dataset;
  int pixels;
  double batch, images, fid;
  const char* source;
};

constexpr const char *kCleanFid = "its paper, quoted by GaParmar/clean-fid",
                     *kStyleGan3 = "Karras et al. 2021, figures 3 and 5",
                     *kStyleGan2 = "Karras et al. 2020, quoted by Papers with Code",
                     *kAda = "Karras et al. 2020, \"Limited Data\", figure 11b",
                     *kMmgen = "open-mmlab/mmgeneration, its own training";

/// FIDs of 50,000 images against the images that were trained on, of trainings from the first image on.
/// StyleGAN2's (Karras et al. 2020) take 25M images of FFHQ, 57M of LSUN's cars, 88M of its churches and cats and 100M
/// of its horses by the commands of NVlabs/stylegan2's README.md, 32 a step; those at 256 pixels and with ADA (Karras
/// et al. 2020, "Limited Data") the 25M and the batches of the paper configurations in NVlabs/stylegan2-ada's train.py,
/// and 100M of CIFAR-10. StyleGAN3's take the 25M, the batches and the augmentation of NVlabs/stylegan3's
/// list of configurations; those of MetFaces are not here, because they go on from FFHQ. open-mmlab/mmgeneration states
/// the iteration of the best FID (configs/sagan, sngan_proj and biggan, README.md), each of which is one of the
/// discriminator on the stated images; its BigGAN of 128 pixels adds up the gradients of eight. Trainings of small sets
/// without ADA diverge long before, so these are not here. FFHQ-U's 3.67 and 3.79 and CIFAR-10's 2.92 were written from
/// memory of the papers. Left out for lack of the images that they saw: BigGAN of 256
/// pixels, R3GAN, StyleGAN-XL; for other reference images: SNGAN's own.
constexpr Row kRows[] = {{"stylegan2", "StyleGAN2", false, "0", "ffhq", 1024, 32, 25e6, 2.84, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "0", "ffhq", 256, 64, 25e6, 3.66, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "ffhq", 256, 64, 25e6, 3.88, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "0", "lsunchurch", 256, 32, 88e6, 3.86, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "0", "lsuncat", 256, 32, 88e6, 6.93, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "0", "lsunhorse", 256, 32, 100e6, 3.43, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "0", "lsuncar", 512, 32, 57e6, 2.32, kStyleGan2},
                         {"stylegan2", "StyleGAN2", false, "1", "afhqcat", 512, 64, 25e6, 3.55, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "afhqdog", 512, 64, 25e6, 7.40, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "afhqwild", 512, 64, 25e6, 3.05, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "metfaces", 1024, 32, 25e6, 18.22, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "brecahad", 512, 64, 25e6, 15.71, kCleanFid},
                         {"stylegan2", "StyleGAN2", false, "1", "cifar10", 32, 64, 100e6, 2.92, kAda},
                         {"stylegan2", "StyleGAN2", true, "1", "cifar10", 32, 64, 100e6, 2.42, kAda},
                         {"stylegan2", "StyleGAN2", false, "0", "ffhqu", 1024, 32, 25e6, 3.79, kStyleGan3},
                         {"stylegan2", "StyleGAN2", false, "0", "ffhqu", 256, 64, 25e6, 5.14, kStyleGan3},
                         {"stylegan2", "StyleGAN2", false, "1", "afhqv2", 512, 32, 25e6, 4.62, kStyleGan3},
                         {"stylegan3-t", "StyleGAN3-T", false, "0", "ffhq", 1024, 32, 25e6, 2.79, kStyleGan3},
                         {"stylegan3-r", "StyleGAN3-R", false, "0", "ffhq", 1024, 32, 25e6, 3.07, kStyleGan3},
                         {"stylegan3-t", "StyleGAN3-T", false, "0", "ffhqu", 1024, 32, 25e6, 3.67, kStyleGan3},
                         {"stylegan3-r", "StyleGAN3-R", false, "0", "ffhqu", 1024, 32, 25e6, 3.66, kStyleGan3},
                         {"stylegan3-t", "StyleGAN3-T", false, "0", "ffhqu", 256, 64, 25e6, 4.62, kStyleGan3},
                         {"stylegan3-r", "StyleGAN3-R", false, "0", "ffhqu", 256, 64, 25e6, 4.50, kStyleGan3},
                         {"stylegan3-t", "StyleGAN3-T", false, "1", "afhqv2", 512, 32, 25e6, 4.04, kStyleGan3},
                         {"stylegan3-r", "StyleGAN3-R", false, "1", "afhqv2", 512, 32, 25e6, 4.40, kStyleGan3},
                         {"big_resnet", "BigGAN", true, "0", "imagenet", 128, 2048, 371e6, 10.02, kMmgen},
                         {"big_resnet", "BigGAN", true, "0", "cifar10", 32, 50, 19.5e6, 9.78, kMmgen},
                         {"resnet", "SAGAN", true, "0", "imagenet", 128, 256, 243e6, 34.78, kMmgen},
                         {"resnet", "SNGAN with projection", true, "0", "cifar10", 32, 64, 31.4e6, 8.12, kMmgen}};

struct Dataset {
  std::string name;  ///< lower-case letters and digits: "AFHQv2-512 (unstated)" is "afhqv2"
  int pixels = 0;    ///< a number that is a power of two from 16 on; 0: none
  bool comparable = false;
};

Dataset dataset_of(const std::string& level) {
  Dataset out;
  const std::size_t end = level.rfind(" (");
  const std::string reference = end == std::string::npos ? "" : level.substr(end + 2);
  out.comparable = reference.starts_with("unstated") || reference.starts_with("train");
  const std::string name = lower_case(level.substr(0, end));
  const auto is_digit = [&](std::size_t at) { return at < name.size() && name[at] >= '0' && name[at] <= '9'; };
  for (std::size_t at = 0, next = 0; at < name.size(); at = next) {
    for (next = at + 1; is_digit(at) && is_digit(next);) ++next;
    const auto number = parse_number<std::int32_t>(std::string_view(name).substr(at, next - at));
    if (number && *number >= 16 && std::has_single_bit(static_cast<std::uint32_t>(*number)))
      out.pixels = *number;
    else if (number || (name[at] >= 'a' && name[at] <= 'z' && !(name[at] == 'x' && out.pixels > 0)))
      out.name += name.substr(at, next - at);
  }
  // "LSUN-Cars" and "LSUN-Churches" are LSUN's "car" and "church".
  for (const std::string_view many : {"es", "s"})
    if (out.name.ends_with(many) && std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
          return row.dataset == std::string_view(out.name).substr(0, out.name.size() - many.size());
        })) {
      out.name = out.name.substr(0, out.name.size() - many.size());
      break;
    }
  return out;
}

bool is_of_kind(const Row& row, const QualityKind& kind) {
  const std::string &backbone = kind.levels[1], &conditioning = kind.levels[2], &ada = kind.levels[5];
  return !backbone.empty() && std::string_view(row.backbone).starts_with(backbone) &&
         (conditioning.empty() || (conditioning != "no") == row.classes) && (ada.empty() || ada == row.ada);
}

}  // namespace

std::optional<PublishedTraining> published_training(const QualityKind& kind) {
  constexpr double kBatchesApart = 2;
  const Dataset asked = dataset_of(kind.levels[kDatasetFactor]);
  const double pixels = asked.pixels > 0 ? asked.pixels : kind.pixels > 0 ? kind.pixels : 1024;
  const Row* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Row& row : kRows) {
    if (!asked.comparable || asked.name != row.dataset || !is_of_kind(row, kind)) continue;
    if (kind.batch > 0 && (kind.batch * kBatchesApart < row.batch || kind.batch > row.batch * kBatchesApart)) continue;
    const double apart = std::abs(portable_log(pixels / row.pixels));
    if (apart < least) least = apart, nearest = &row;
  }
  if (!nearest) return std::nullopt;
  return PublishedTraining{
      nearest->images, nearest->fid,
      fmt::format(
          "a published training of {} on {} at {} pixels{} got to an FID of {:g} within {:g} million images ({})",
          nearest->trained, nearest->dataset, nearest->pixels, *nearest->ada == '1' ? " with ADA" : "", nearest->fid,
          nearest->images / 1e6, nearest->source)};
}

std::string published_elsewhere(const QualityKind& kind) {
  const Dataset asked = dataset_of(kind.levels[kDatasetFactor]);
  if (asked.name.empty() || !asked.comparable) return "";
  std::vector<std::string> datasets;
  std::vector<double> batches;
  for (const Row& row : kRows) {
    if (!is_of_kind(row, kind)) continue;
    if (row.dataset == asked.name && std::find(batches.begin(), batches.end(), row.batch) == batches.end())
      batches.push_back(row.batch);
    if (std::find(datasets.begin(), datasets.end(), row.dataset) == datasets.end()) datasets.emplace_back(row.dataset);
  }
  if (!batches.empty())
    return fmt::format("trainings of these networks on {} are published at a batch of {}, and say nothing of {:g}",
                       asked.name, fmt::join(batches, " and "), kind.batch);
  if (datasets.empty()) return "";
  return fmt::format(
      "no training of this kind (networks, augmentation, classes) on {} is known to be published, only on {}",
      asked.name, fmt::join(datasets, ", "));
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
