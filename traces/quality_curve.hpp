#pragma once
// Quality curves, `ganymede.quality/1`: how good a generator is after a number of images, recorded in real trainings at
// one or several batch sizes. With them a run can have a quality as its target. A larger batch needs more images to
// reach the same quality; the run pays for them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::traces {

struct QualityPoint {
  double images = 0;  ///< real images that were trained on so far
  double fid = 0, inception_score = 0;
};

/// The record of one training.
struct QualityCurve {
  int batch = 0;  ///< images per step of all workers together
  std::uint64_t seed = 0;
  std::string software;              ///< "ganymede 0.1.0 (eigen)"
  std::vector<QualityPoint> points;  ///< in ascending order of images
};

/// Trainings of one model on one dataset, measured in the features of one network. Values from different feature
/// networks cannot be compared.
struct QualityCurves {
  std::string model, dataset, features;
  std::vector<QualityCurve> curves;
};

inline constexpr const char* kQualitySchema = "ganymede.quality/1";

/// Reads curves. Throws a located ConfigError for unsorted images and impossible values (an FID below 0, an inception
/// score below 1).
QualityCurves read_quality_curves(const JsonNode& root);
std::string write_quality_curves(const QualityCurves& curves);

/// The quality that a run must reach: at most this FID, or at least this inception score.
struct QualityTarget {
  std::optional<double> fid, inception_score;
};

struct ImagesNeeded {
  double images = 0;
  double low = 0, high = 0;  ///< the fewest and the most images that a training at these batch sizes needed
  std::vector<std::string> notes;
};

/// Images that a training with this global batch needs. Each curve is interpolated linearly over the logarithm of the
/// images, with the best value reached so far; several seeds count by their geometric mean; between two recorded batch
/// sizes the logarithm of the images is interpolated linearly over the logarithm of the batch size. Beyond the recorded
/// batch sizes the nearest one counts, and a note says so. Throws ConfigError with the best recorded value if no curve
/// reaches the target.
ImagesNeeded images_for(const QualityCurves& curves, const QualityTarget& target, double batch);

}  // namespace ganymede::traces
