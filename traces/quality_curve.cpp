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

namespace ganymede::traces {
namespace {

QualityCurve read_curve(const JsonNode& node) {
  JsonObject in(node);
  QualityCurve curve;
  curve.batch = static_cast<int>(in.required("batch").as_integer(1, 1 << 30));
  if (auto seed = in.optional("seed")) curve.seed = seed->as_seed();
  if (auto software = in.optional("software")) curve.software = software->as_string();
  const JsonNode points = in.required("points");
  for (const JsonNode& item : points.as_array()) {
    JsonObject point(item);
    QualityPoint& out = curve.points.emplace_back();
    const JsonNode images = point.required("images");
    out.images = images.as_number(1, 1e15);
    if (curve.points.size() > 1 && out.images <= curve.points[curve.points.size() - 2].images)
      images.expected("more images than at the point before");
    out.fid = point.required("fid").as_number(0, 1e9);
    out.inception_score = point.required("inception_score").as_number(1, 1e9);
    point.finish();
  }
  if (curve.points.empty()) points.expected("at least one point");
  in.finish();
  return curve;
}

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

QualityCurves read_quality_curves(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, kQualitySchema);
  QualityCurves out;
  out.model = in.required("model").as_string();
  out.dataset = in.required("dataset").as_string();
  out.features = in.required("features").as_string();
  const JsonNode curves = in.required("curves");
  for (const JsonNode& curve : curves.as_array()) out.curves.push_back(read_curve(curve));
  if (out.curves.empty()) curves.expected("at least one training");
  in.finish();
  return out;
}

std::string write_quality_curves(const QualityCurves& curves) {
  OrderedJson out = {
      {"schema", kQualitySchema}, {"model", curves.model}, {"dataset", curves.dataset}, {"features", curves.features}};
  out["curves"] = OrderedJson::array();
  for (const QualityCurve& curve : curves.curves) {
    OrderedJson points = OrderedJson::array();
    for (const QualityPoint& point : curve.points)
      points.push_back({{"images", point.images}, {"fid", point.fid}, {"inception_score", point.inception_score}});
    OrderedJson entry = {{"batch", curve.batch}, {"seed", curve.seed}};
    if (!curve.software.empty()) entry["software"] = curve.software;
    entry["points"] = points;
    out["curves"].push_back(entry);
  }
  return out.dump(1) + "\n";
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
