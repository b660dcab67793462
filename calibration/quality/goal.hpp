#pragma once
// An FID as the goal of a run: "quality" in the workload of a scenario or a request.

#include <map>
#include <optional>

#include "calibration/quality/forecast.hpp"

namespace ganymede::calibration {

class QualityGoal {
 public:
  /// Reads { "fid": 30, "curve": "model.json", "dataset": "CIFAR10", "reference": "test 10000", … }; all but "fid" may
  /// be left out. The networks and the loss are those of `model` unless it states others. Throws a located ConfigError.
  static QualityGoal read(const JsonNode& node, const std::string& model);

  double fid() const { return fid_; }
  /// The outlook on the goal, and on the FID on the way to it, of a training with this batch until `horizon` images
  /// (0: as far as forecasts go), given its points. Throws ConfigError if `reference`, that of the points, is another
  /// one than the goal's.
  QualityOutlook given(const std::vector<RecordedRun::Point>& points, const std::string& reference, double batch,
                       double horizon) const;
  /// The outlook on the images that a training with this batch needs. Throws Infeasible if hardly any gets there.
  const TargetOutlook& at(double batch) const;
  /// The images of a median training with this batch that gets there, rounded up; 1 if hardly any does.
  std::int64_t images(double batch) const;
  /// The images that one point of FID less takes, as a factor on those of the goal; nothing if hardly any gets there.
  std::optional<double> factor_of_a_point(double batch) const;
  /// A sentence with the images, their interval and the chance never to get there.
  std::string text(double batch) const;
  /// Why the answer is wide.
  std::vector<std::string> notes(double batch) const;

 private:
  const QualityOutlook& outlook(double batch) const;

  double fid_ = 0;
  std::string reference_;  ///< what the FID compares with; empty if the goal does not say it
  QualityKind kind_;
  QualityModel model_;
  mutable std::map<double, QualityOutlook> known_;  ///< by batch: a search asks for the same ones again and again
};

}  // namespace ganymede::calibration
