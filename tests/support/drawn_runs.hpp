#pragma once
// Trainings drawn from known curves, for tests of the fit and of forecasts.

#include <cmath>
#include <string>
#include <vector>

#include "calibration/quality/fit.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {

struct DrawnKind {
  std::string backbone = "resnet";
  double log_floor = 0, log_half = 0;  ///< effects on the usual shape
  double spread = 0.2, noise = 0.03;
  double last_images = 1e8;
};

inline constexpr Shape kUsual = {2.3, 4.5, 1.2, 0.3};

/// Draws one training, whose true shape goes to `truth`.
inline RecordedRun drawn_run(RandomStream& random, const DrawnKind& kind, Shape* truth = nullptr) {
  Shape shape = kUsual;
  shape[0] += kind.log_floor, shape[2] += kind.log_half;
  for (double& value : shape) value += kind.spread * random.normal();
  RecordedRun run;
  run.name = kind.backbone;
  run.kind.levels = {"data (test 1)", kind.backbone, "no", "hinge", "0", "0"};
  run.kind.batch = 64;
  for (double images = 3e5; images < kind.last_images; images *= 1.4)
    run.points.push_back({images, std::exp(log_fid(shape, std::log(images / 1e6)) + kind.noise * random.normal())});
  if (truth) *truth = shape;
  return run;
}

inline std::vector<RecordedRun> drawn_runs(RandomStream& random, const DrawnKind& kind, int count) {
  std::vector<RecordedRun> runs;
  for (int i = 0; i < count; ++i) runs.push_back(drawn_run(random, kind));
  return runs;
}

/// Lets a training diverge after the point at `index`.
inline void diverge(RecordedRun& run, std::size_t index) {
  for (std::size_t i = index + 1; i < run.points.size(); ++i) run.points[i].fid = 3 * run.points[index].fid;
}

}  // namespace ganymede::calibration
