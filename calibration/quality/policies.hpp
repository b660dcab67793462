#pragma once
// Policies for trainings that may not get to their FID: rules over trainings drawn from the model, compared by
// the images that they train in all.

#include "calibration/quality/forecast.hpp"

namespace ganymede::calibration {

struct PolicyQuestion {
  QualityKind kind;
  double fid = 0;
  double horizon = 0;  ///< most images of one training; 0: those within which 95 % of the trainings that get there do
  double check = 1e6;  ///< images from one evaluation to the next
  int seeds = 4;       ///< most trainings, or those that halving begins with
};

struct PolicyOutlook {
  std::string name, summary;
  double probability = 0;     ///< to reach the FID
  QualityInterval images{};   ///< of all its trainings together, where one reaches it; all 0 if hardly any does
  double mean_images = 0;     ///< of all its trainings together, those included that were for nothing
  double mean_trainings = 0;  ///< begun
};

struct PolicyComparison {
  double horizon = 0;
  std::vector<PolicyOutlook> policies;
  std::vector<std::string> notes;
};

/// Part of a training's images after which it is given up by early stopping if its best FID has not fallen by
/// kLeastFall meanwhile.
inline constexpr double kPatience = 1.0 / 3, kLeastFall = 0.01;

/// The same question gets the same answer. Trainings of one kind share what is not known of the kind, so that a second
/// seed helps less than it would if they were independent.
PolicyComparison compare_quality_policies(const QualityModel& model, const PolicyQuestion& question);

}  // namespace ganymede::calibration
