#include "traces/quality_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "documents/forms.hpp"

namespace ganymede::traces {
namespace {

/// How far the point falls short of the target; zero or less if it meets it.
double shortfall(const QualityPoint& point, const QualityTarget& target) {
  return target.fid ? point.fid - *target.fid : *target.inception_score - point.inception_score;
}

/// Images until the target is first met; nothing if it never is.
std::optional<double> first_met(const QualityCurve& curve, const QualityTarget& target) {
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const double here = shortfall(curve.points[i], target);
    if (here > 0) continue;
    if (i == 0) return curve.points[0].images;
    const QualityPoint& before = curve.points[i - 1];
    const double left = shortfall(before, target);
    const double a = portable_log(before.images), b = portable_log(curve.points[i].images);
    return portable_exp(a + (b - a) * left / (left - here));
  }
  return std::nullopt;
}

struct AtBatch {
  double log_sum = 0, low = INFINITY, high = 0;
  int count = 0, missed = 0;
};

}  // namespace

void describe(documents::Walk& walk, QualityPoint& point) {
  walk.member("images", point.images, {.low = 1, .high = 1e15, .required = true});
  walk.member("fid", point.fid, {.low = 0, .high = 1e9, .required = true});
  walk.member("inception_score", point.inception_score, {.low = 1, .high = 1e9, .required = true});
}

void describe(documents::Walk& walk, QualityCurve& curve) {
  walk.member("batch", curve.batch, {.low = 1, .high = 1 << 30, .required = true});
  walk.member("seed", curve.seed);
  walk.member_unless("software", curve.software, std::string(), {.filled = true});
  walk.member("points", curve.points, {.required = true, .items = "point"});
  for (std::size_t i = 1; walk.reads() && i < curve.points.size(); ++i)
    if (curve.points[i].images <= curve.points[i - 1].images)
      walk.expect(fmt::format("points/{}/images", i), "more images than at the point before");
}

void describe(documents::Walk& walk, QualityCurves& curves) {
  walk.constant("schema", kQualitySchema, documents::kRequired);
  walk.member("model", curves.model, documents::kText);
  walk.member("dataset", curves.dataset, documents::kText);
  walk.member("features", curves.features, documents::kText);
  walk.member("curves", curves.curves, {.required = true, .items = "training"});
}

QualityCurves read_quality_curves(const JsonNode& root) {
  JsonObject head(root);
  check_schema(head, kQualitySchema);
  QualityCurves curves;
  documents::read(root, documents::described(curves));
  return curves;
}

std::string write_quality_curves(const QualityCurves& curves) {
  return documents::written(documents::described(curves)).dump(1) + "\n";
}

ImagesNeeded images_for(const QualityCurves& curves, const QualityTarget& target, double batch) {
  std::map<int, AtBatch> by_batch;
  double best = target.fid ? std::numeric_limits<double>::infinity() : 0;
  for (const QualityCurve& curve : curves.curves) {
    AtBatch& at = by_batch[curve.batch];
    for (const QualityPoint& point : curve.points)
      best = target.fid ? std::min(best, point.fid) : std::max(best, point.inception_score);
    const auto images = first_met(curve, target);
    if (!images) {
      ++at.missed;
      continue;
    }
    at.log_sum += portable_log(*images);
    at.low = std::min(at.low, *images), at.high = std::max(at.high, *images);
    ++at.count;
  }
  ImagesNeeded out;
  for (const auto& [size, at] : by_batch)
    if (at.missed > 0)
      out.notes.push_back(
          fmt::format("{} of {} trainings at batch {} never reach the target and are left out: it may "
                      "take more images than this",
                      at.missed, at.count + at.missed, size));
  std::erase_if(by_batch, [](const auto& entry) { return entry.second.count == 0; });
  if (by_batch.empty())
    throw ConfigError(
        fmt::format("no recorded training of {} on {} gets there; the best {} is {:.4g} (in the features of {})",
                    curves.model, curves.dataset, target.fid ? "FID" : "inception score", best, curves.features));
  const auto above = by_batch.lower_bound(static_cast<int>(std::ceil(batch)));
  const auto mean = [](const AtBatch& at) { return at.log_sum / at.count; };
  if (above == by_batch.end() || (above == by_batch.begin() && above->first > batch)) {
    const auto nearest = above == by_batch.end() ? std::prev(above) : above;
    out.images = portable_exp(mean(nearest->second));
    out.low = nearest->second.low, out.high = nearest->second.high;
    out.notes.push_back(
        fmt::format("no quality was recorded at a batch of {:g} in all: the images that batch {} needs are "
                    "taken; a larger batch usually needs more",
                    batch, nearest->first));
    return out;
  }
  if (above->first == batch) {
    out.images = portable_exp(mean(above->second));
    out.low = above->second.low, out.high = above->second.high;
    return out;
  }
  const auto below = std::prev(above);
  const double share =
      portable_log(batch / below->first) / portable_log(static_cast<double>(above->first) / below->first);
  out.images = portable_exp(mean(below->second) + share * (mean(above->second) - mean(below->second)));
  out.low = std::min(below->second.low, above->second.low);
  out.high = std::max(below->second.high, above->second.high);
  return out;
}

}  // namespace ganymede::traces
