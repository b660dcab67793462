#pragma once
// Trainings of which only the best FID is published. They tell what others of their kind may come to.

#include <optional>
#include <string>

#include "calibration/quality/model.hpp"

namespace ganymede::calibration {

struct PublishedTraining {
  double images = 0, fid = 0;
  std::string text;  ///< a sentence with its source
};

/// The published training of these networks on this dataset, of the nearest size of image, that had ADA and classes or
/// had not; none if the dataset's FIDs compare with anything but the images that are trained on, or if the batch is not
/// within a factor of two of the published training's.
std::optional<PublishedTraining> published_training(const QualityKind& kind);
/// If there is none: on which datasets there are published trainings of these networks. Empty if there are none at all.
std::string published_elsewhere(const QualityKind& kind);

/// The prior of a training if another one of its kind is known to have come so far: what the two share moves to
/// where the published one lies, and trainings of one kind still differ as `model` says.
QualityPrior with_published(const QualityModel& model, QualityPrior prior, const PublishedTraining& published);

}  // namespace ganymede::calibration
