#pragma once
// How good a generator is after so many images, `ganymede.quality/1`: recorded by real trainings at one or several
// batch sizes, so that a run may have a quality for its target and a larger batch is charged what it costs in quality.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"

namespace ganymede {

struct QualityPoint {
  double images = 0;  ///< real ones trained on so far
  double fid = 0, inception_score = 0;
};

/// One training.
struct QualityCurve {
  int batch = 0;  ///< of all workers together
  std::uint64_t seed = 0;
  std::string software;              ///< "ganymede 0.1.0 (eigen)"
  std::vector<QualityPoint> points;  ///< by ascending images
};

/// Trainings of one model on one dataset, measured in the features of one network: figures of different feature
/// networks cannot be compared.
struct QualityCurves {
  std::string model, dataset, features;
  std::vector<QualityCurve> curves;
};

inline constexpr const char* kQualitySchema = "ganymede.quality/1";

/// ConfigError, located: unsorted images, figures that are no FID or inception score.
QualityCurves read_quality_curves(const JsonNode& root);
std::string write_quality_curves(const QualityCurves& curves);

/// What a run is to reach: an FID at most, or an inception score at least.
struct QualityTarget {
  std::optional<double> fid, inception_score;
};

struct ImagesNeeded {
  double images = 0;
  double low = 0, high = 0;  ///< the least and the most of trainings at the batch sizes used
  std::vector<std::string> notes;
};

/// At a global batch: along each curve on straight lines over the logarithm of the images, best so far; over seeds
/// the geometric mean; between two batch sizes on a straight line over logarithms. Beyond the recorded batch sizes the
/// nearest one's is taken, which a note says. ConfigError naming the best that was reached if no curve gets there.
ImagesNeeded images_for(const QualityCurves& curves, const QualityTarget& target, double batch);

}  // namespace ganymede
