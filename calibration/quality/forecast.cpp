#include "calibration/quality/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "calibration/quality/published.hpp"
#include "common/random.hpp"
#include "common/statistics.hpp"

namespace ganymede::calibration {
namespace {

constexpr int kSettlingSteps = 2000, kStepsEach = 5;
/// Lengths of steps, in standard deviations: short ones are accepted where the posterior bends, long ones cross it.
constexpr std::array kLengths = {0.3, 1.2, 3.0};

/// Adds a normal step with the covariance that `lower` is the root of.
Shape stepped(const Shape& from, const Matrix& lower, double length, RandomStream& random) {
  Shape to = from;
  std::array<double, kShapeSize> normal{};
  for (double& value : normal) value = random.normal();
  for (std::size_t i = 0; i < kShapeSize; ++i)
    for (std::size_t j = 0; j <= i; ++j) to.at(i) += length * lower.at(i, j) * normal.at(j);
  return to;
}

}  // namespace

std::vector<Shape> sample_shapes(const SeenCurve& seen, const ShapePrior& prior, double variance, const ShapeFit& fit,
                                 std::size_t count, RandomStream& random) {
  const std::array lowers = {cholesky(fit.covariance), cholesky(prior.covariance)};
  std::vector<Shape> out;
  if (seen.ln_fid.empty()) {
    while (out.size() < count) out.push_back(stepped(prior.mean, lowers[1], 1, random));
    return out;
  }
  const Matrix precision = inverse(prior.covariance);
  Shape at = fit.shape;
  double cost = shape_cost(seen, prior, precision, variance, at);
  for (int i = -kSettlingSteps; out.size() < count; ++i) {
    // Three of four steps are as wide as the posterior about the fit, one is as wide as the prior.
    const Matrix& lower = lowers[random.below(4) == 0 ? 1 : 0];
    const Shape tried = stepped(at, lower, kLengths[random.below(kLengths.size())], random);
    const double then = shape_cost(seen, prior, precision, variance, tried);
    if (2 * random.exponential() >= then - cost) {
      at = tried;
      cost = then;
    }
    if (i >= 0 && i % kStepsEach == 0) out.push_back(at);
  }
  return out;
}

namespace {

constexpr int kDraws = 4000;
constexpr double kNever = std::numeric_limits<double>::infinity();
/// Fewer trainings than this that reach a target say nothing about when.
constexpr std::size_t kFewestReached = 20;

/// Parts into which the images to come are divided, evenly in their logarithm.
constexpr int kParts = 64;

/// One training as it may go, at even distances of ln(images) from the last point to the horizon.
struct DrawnTraining {
  double log_end = 0;  ///< ln of the millions of images at which it diverges; it improves until then
  std::array<double, kParts + 1> log_best{};  ///< ln of its lowest FID so far, as if it did not diverge
};

/// Where the images to come begin and end, as logarithms of millions.
struct Ahead {
  double from = 0, to = 0;
  double at(int part) const { return from + (to - from) * part / kParts; }
};

/// The evidence of the points on a training; without points, its kind alone.
struct Posterior {
  ShapeFit fit;
  double noise = 0;
  UsefulPoints useful;
  double log_time = 0;  ///< ln of the images over kFirstImages at its last useful point
};

Posterior posterior_of(const QualityModel& model, const QualityPrior& prior, const QualityQuestion& question) {
  Posterior out{{prior.shape.mean, prior.shape.covariance}, model.noise, {}, 0};
  if (question.points.empty()) return out;
  out.useful = useful_points(question.points);
  out.log_time = std::max(0.0, out.useful.seen.ln_images.back() - portable_log(kFirstImages / 1e6));
  out.useful.seen = out.useful.seen.from_its_end(model.drift, model.noise);
  out.fit = fit_shape_and_noise(out.useful.seen, prior.shape, model.noise, out.noise);
  return out;
}

/// A rate of divergence for each e-fold of the images, of a training that has gone on for `log_time` of them: drawings
/// are kept with the probability that such a training lasts so long, so that what has lasted is less likely to diverge.
double rate_of_survivor(const QualityPrior& prior, double log_time, RandomStream& random) {
  constexpr int kMostTries = 1000;
  double rate = 0;
  for (int i = 0; i < kMostTries; ++i) {
    const double log_hazard = prior.log_hazard + prior.log_hazard_sd * random.normal();
    rate = portable_exp(std::clamp(log_hazard, -30.0, 30.0));
    if (random.exponential() >= rate * (log_time + prior.log_lasted)) break;
  }
  return rate;
}

/// Lets a training go along its curve. Curves are not exactly of this shape, so that one which is known up to here
/// drifts off it, by `drift` a square root of an e-fold of the images. Its best lies where it was seen, `log_best`, and
/// goes to `log_offset` off the curve as fast as residuals are forgotten.
void go_on(const Shape& shape, double log_offset, double drift, std::optional<double> log_best, const Ahead& ahead,
           DrawnTraining& drawn) {
  constexpr double kLargestPower = 300;
  const double floor = portable_exp(shape[0]), drop = portable_exp(shape[1]), slope = portable_exp(shape[3]);
  const auto power_of = [&](double log_images) {
    return portable_exp(std::clamp(slope * log_images, -kLargestPower, kLargestPower));
  };
  // (images / half)^slope, by the same factor from part to part: log_fid() at each would take most of a plan's time.
  double power = power_of(ahead.from - shape[2]), lowest = kNever;
  const double each = ahead.at(1) - ahead.from, factor = power_of(each);
  double kept = log_best ? *log_best - portable_log(floor + drop / (1 + power)) - log_offset : 0;
  const double forgotten = portable_exp(-each / kCorrelation);
  for (int part = 0; part <= kParts; ++part, power *= factor, kept *= forgotten) {
    const double log_fid = portable_log(floor + drop / (1 + power));
    lowest = std::min(lowest, log_fid + log_offset + kept + drift * std::sqrt(ahead.at(part) - ahead.from));
    drawn.log_best.at(static_cast<std::size_t>(part)) = lowest;
  }
}

std::vector<DrawnTraining> draw(const QualityModel& model, const QualityPrior& prior, const Posterior& posterior,
                                const Ahead& ahead) {
  RandomStream random(1, "calibration/quality");
  const bool seen = !posterior.useful.seen.ln_fid.empty();
  const std::vector<Shape> shapes =
      sample_shapes(posterior.useful.seen, prior.shape, posterior.noise, posterior.fit, kDraws, random);
  // A training that has risen far above its best seldom comes back; one rise and one return are added to those seen.
  const double comes_back = (model.recovered + 1.0) / (model.rises + 2.0);
  std::optional<double> log_best;
  if (seen) log_best = *std::min_element(posterior.useful.seen.ln_fid.begin(), posterior.useful.seen.ln_fid.end());
  std::vector<DrawnTraining> out(kDraws);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double rate = rate_of_survivor(prior, posterior.log_time, random);
    out[i].log_end = ahead.from + random.exponential() / rate;
    const double log_offset = std::sqrt(posterior.noise) * (model.best + random.normal());
    const double drift = seen ? model.drift * random.normal() : 0;
    go_on(shapes[i], log_offset, drift, log_best, ahead, out[i]);
    if (random.uniform() >= comes_back && posterior.useful.diverged) out[i].log_end = -kNever;
  }
  return out;
}

/// ln of the millions of images at which the training is down at `log_target`; infinite if it never is.
double reaches_at(const DrawnTraining& drawn, const Ahead& ahead, double log_target) {
  const auto& best = drawn.log_best;
  const auto reached = std::find_if(best.begin(), best.end(), [&](double value) { return value <= log_target; });
  if (reached == best.end()) return kNever;
  const auto part = static_cast<int>(reached - best.begin());
  if (part == 0) return ahead.from;
  const double share = (*(reached - 1) - log_target) / (*(reached - 1) - *reached);
  const double at = ahead.at(part - 1) + share * (ahead.at(part) - ahead.at(part - 1));
  return at <= drawn.log_end ? at : kNever;
}

/// ln of the lowest FID after `log_images`, or until the training diverges; infinite if it has done so already.
double lowest_of(const DrawnTraining& drawn, const Ahead& ahead, double log_images) {
  const double at = std::min(drawn.log_end, log_images);
  if (at < ahead.from) return kNever;
  if (at >= ahead.to) return drawn.log_best.back();
  const double parts = kParts * (at - ahead.from) / (ahead.to - ahead.from);
  const auto part = std::min<std::size_t>(static_cast<std::size_t>(parts), kParts - 1);
  const double share = parts - static_cast<double>(part);
  return (1 - share) * drawn.log_best.at(part) + share * drawn.log_best.at(part + 1);
}

QualityInterval interval_of(std::vector<double>& logs, double factor) {
  std::sort(logs.begin(), logs.end());
  const auto at = [&](double share) { return factor * portable_exp(quantile(logs, share)); };
  return {at(0.5), at(0.05), at(0.95)};
}

/// Images at which the points first reached `fid`, on a straight line over ln(images); nothing if they did not.
std::optional<double> reached_at(const std::vector<RecordedRun::Point>& points, double fid) {
  const RecordedRun::Point* before = nullptr;  // the best so far
  for (const RecordedRun::Point& point : points) {
    if (point.fid <= fid) {
      if (!before) return point.images;
      const double from = portable_log(before->images), to = portable_log(point.images);
      return portable_exp(from + (to - from) * (before->fid - fid) / (before->fid - point.fid));
    }
    if (!before || point.fid < before->fid) before = &point;
  }
  return std::nullopt;
}

/// `drawn` go on until the end of `ahead`, and what counts for the chance is who is there until `log_horizon`.
/// Intervals that ended there would lack those that come late, and be too early for targets near the end.
TargetOutlook outlook_of(const std::vector<DrawnTraining>& drawn, const QualityQuestion& question, double fid,
                         const Ahead& ahead, double log_horizon) {
  TargetOutlook out{.fid = fid};
  if (const auto at = reached_at(question.points, fid)) {
    out.reached = true;
    out.probability = 1;
    out.images = {*at, *at, *at};
    return out;
  }
  std::vector<double> logs;
  int within = 0;
  for (const DrawnTraining& training : drawn) {
    const double at = reaches_at(training, ahead, portable_log(fid));
    if (at < kNever) logs.push_back(at);
    within += at <= log_horizon ? 1 : 0;
  }
  out.probability = static_cast<double>(within) / kDraws;
  if (logs.size() >= kFewestReached) out.images = interval_of(logs, 1e6);
  return out;
}

/// The lowest FID after some images, as curves of trainings that keep their best checkpoint.
std::vector<OutlookPoint> best_so_far(const std::vector<DrawnTraining>& drawn, double best_seen, const Ahead& ahead) {
  constexpr int kEvery = 4;
  const double log_seen = best_seen > 0 ? portable_log(best_seen) : kNever;
  std::vector<OutlookPoint> out;
  std::vector<double> logs(drawn.size());
  for (int part = 0; part <= kParts; part += kEvery) {
    const double at = ahead.at(part);
    for (std::size_t i = 0; i < drawn.size(); ++i) logs[i] = std::min(log_seen, lowest_of(drawn[i], ahead, at));
    out.push_back({1e6 * portable_exp(at), interval_of(logs, 1)});
  }
  return out;
}

/// The recorded trainings on which the forecast of a kind rests.
std::string rests_on(const QualityModel& model, const QualityKind& kind) {
  constexpr std::size_t kBackbone = 1;
  std::set<std::string> others;
  int same = 0, like = 0;
  for (const FittedRun& run : model.runs) {
    others.insert(run.kind.levels[kDatasetFactor]);
    if (run.kind.levels[kDatasetFactor] != kind.levels[kDatasetFactor]) continue;
    ++same;
    if (run.kind.levels[kBackbone] == kind.levels[kBackbone]) ++like;
  }
  if (same == 0) return fmt::format("the forecast is from trainings on other data: {}", fmt::join(others, ", "));
  const std::string& backbone = kind.levels[kBackbone];
  return fmt::format("the forecast rests on {} recorded trainings of {}, {} with {}", same, kind.levels[kDatasetFactor],
                     like == 0 ? "none" : fmt::format("{}", like), backbone.empty() ? "networks unstated" : backbone);
}

std::vector<std::string> notes_of(const QualityModel& model, const QualityQuestion& question,
                                  const UsefulPoints& useful, const std::optional<PublishedTraining>& published,
                                  const QualityOutlook& outlook) {
  const std::string& dataset = question.kind.levels[kDatasetFactor];
  const QualityKind recorded = recorded_kind(model, question.kind);
  std::vector<std::string> notes{rests_on(model, recorded)};
  const std::string known = published ? published->text : published_elsewhere(question.kind);
  if (!known.empty()) notes.push_back(known);
  if (recorded.levels != question.kind.levels)
    notes.push_back(fmt::format("{} counts as {}, whose published FIDs are near its own", question.kind.levels[1],
                                recorded.levels[1]));
  for (const std::size_t factor : model.unknown(recorded)) {
    const std::string& level = question.kind.levels.at(factor);
    notes.push_back(level.empty()
                        ? fmt::format("the {} is not stated, which widens the answer", kQualityFactorNames.at(factor))
                        : fmt::format("no recorded training has the {} \"{}\", which widens the answer",
                                      kQualityFactorNames.at(factor), level));
  }
  if (outlook.images_seen > 0 && outlook.images_seen < kFirstImages)
    notes.push_back(fmt::format(
        "the last point is after {:.6g} images, before {:g}, where the recorded trainings begin: the answer "
        "is wide, and wrong if these are steps",
        outlook.images_seen, kFirstImages));
  if (question.points.size() == 1) notes.push_back("one point alone says little about where the curve goes");
  if (useful.diverged)
    notes.push_back(
        fmt::format("the last FID is above {} times the best, {:.4g}: of {} trainings that rose so, {} "
                    "fell below their best again",
                    kDivergedAbove, outlook.best_seen, model.rises, model.recovered));
  else if (question.points.size() > 1 && question.points.back().fid > question.points.front().fid)
    notes.push_back("FID has risen since the first point; the answer is mostly that of other trainings of its kind");
  if (const double best = model.best_of(dataset); best > 0)
    for (const double fid : question.targets)
      if (fid < best)
        notes.push_back(
            fmt::format("an FID of {:g} is below the best of all recorded trainings of {}, {:g}", fid, dataset, best));
  for (const TargetOutlook& target : outlook.targets)
    if (target.probability * kDraws < kFewestReached)
      notes.push_back(fmt::format("hardly any training of this kind gets to an FID of {:g} within {:.3g} images",
                                  target.fid, outlook.horizon));
  return notes;
}

}  // namespace

QualityOutlook forecast_quality(const QualityModel& model, const QualityQuestion& question) {
  QualityOutlook out;
  for (const RecordedRun::Point& point : question.points) {
    out.images_seen = point.images;
    out.best_seen = out.best_seen > 0 ? std::min(out.best_seen, point.fid) : point.fid;
  }
  out.horizon = question.horizon > 0 ? question.horizon : std::max(kHorizon, 10 * out.images_seen);
  const auto published = published_training(question.kind);
  QualityPrior prior = prior_of(model, recorded_kind(model, question.kind));
  if (published) prior = with_published(model, std::move(prior), *published);
  const Posterior posterior = posterior_of(model, prior, question);
  out.diverged = posterior.useful.diverged;
  const double from = portable_log(std::max(kFirstImages, out.images_seen) / 1e6);
  const Ahead ahead{from, std::max(from, portable_log(out.horizon / 1e6))};
  const Ahead beyond{from, std::max(ahead.to, portable_log(std::max(kHorizon, 10 * out.images_seen) / 1e6))};
  const std::vector<DrawnTraining> drawn = draw(model, prior, posterior, ahead);
  const auto later = beyond.to > ahead.to ? draw(model, prior, posterior, beyond) : drawn;
  for (const double fid : question.targets) out.targets.push_back(outlook_of(later, question, fid, beyond, ahead.to));
  out.curve = best_so_far(drawn, out.best_seen, ahead);
  out.best = out.curve.back().best;
  out.notes = notes_of(model, question, posterior.useful, published, out);
  return out;
}

}  // namespace ganymede::calibration
