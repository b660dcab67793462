#include "calibration/quality/policies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/random.hpp"
#include "common/statistics.hpp"

namespace ganymede::calibration {
namespace {

constexpr int kWorlds = 2000;
constexpr double kNotAtAll = std::numeric_limits<double>::infinity();
constexpr std::size_t kFewestSuccesses = 20;

/// One training as it would go if nobody ended it; images are single ones, not millions.
struct Training {
  Shape shape{};
  double log_offset = 0;
  double reaches = kNotAtAll;   ///< images of the first evaluation at or below the FID
  double diverged = kNotAtAll;  ///< images of the first evaluation after it has diverged
  double end = kNotAtAll;       ///< images at which it diverges

  double log_best(double images) const {
    return log_fid(shape, portable_log(std::min(images, end) / 1e6)) + log_offset;
  }
};

/// Draws trainings of one kind in worlds in which what is not known of the kind has been decided.
class TrainingSource {
 public:
  TrainingSource(const QualityModel& model, const PolicyQuestion& question)
      : model_(model), question_(question), prior_(prior_of(model, question.kind)) {
    Shape of_kind{};
    for (std::size_t d = 0; d < kShapeSize; ++d)
      of_kind.at(d) = std::max(1e-9, prior_.shape.covariance.at(d, d) - model.spread.at(d, d));
    own_ = cholesky(model.spread);
    of_kind_ = cholesky(with_variances(model.spread, of_kind));
  }

  void next_world() {
    kind_ = stepped(prior_.shape.mean, of_kind_);
    rate_ = portable_exp(std::clamp(prior_.log_hazard + prior_.log_hazard_sd * random_.normal(), -30.0, 30.0));
  }

  Training next() {
    Training out;
    out.shape = stepped(kind_, own_);
    out.log_offset = std::sqrt(model_.noise) * (model_.best + random_.normal());
    out.end = kFirstImages * portable_exp(std::min(100.0, random_.exponential() / rate_));
    out.diverged = next_check(out.end);
    const double log_at = log_images_to(out.shape, question_.fid * portable_exp(-out.log_offset));
    const double at = log_at < 100 ? std::max(kFirstImages, 1e6 * portable_exp(log_at)) : kNotAtAll;
    if (at <= out.end) out.reaches = next_check(at);
    return out;
  }

 private:
  double next_check(double images) const {
    return images < kNotAtAll ? question_.check * std::ceil(images / question_.check) : kNotAtAll;
  }
  Shape stepped(const Shape& from, const Matrix& lower) {
    Shape to = from;
    std::array<double, kShapeSize> normal{};
    for (double& value : normal) value = random_.normal();
    for (std::size_t i = 0; i < kShapeSize; ++i)
      for (std::size_t j = 0; j <= i; ++j) to.at(i) += lower.at(i, j) * normal.at(j);
    return to;
  }

  const QualityModel& model_;
  const PolicyQuestion& question_;
  QualityPrior prior_;
  Matrix own_, of_kind_;
  Shape kind_{};
  double rate_ = 0;
  RandomStream random_{1, "calibration/quality/policies"};
};

struct PolicyRun {
  bool reached = false;
  double images = 0;
  int trainings = 0;
};

/// One training until its FID, but for no more than `most` images.
PolicyRun train(const Training& training, double most) {
  const bool reached = training.reaches <= most;
  return {reached, reached ? training.reaches : most, 1};
}

PolicyRun train_on(TrainingSource& source, const PolicyQuestion& question) {
  return train(source.next(), question.horizon);
}

/// Images after which the best FID of a training falls by less than kLeastFall over the last kPatience of them.
double given_up_at(const Training& training, const PolicyQuestion& question) {
  constexpr double kNext = 1.1;
  for (double images = std::max(question.check, kFirstImages); images < question.horizon; images *= kNext)
    if (training.log_best((1 - kPatience) * images) - training.log_best(images) < kLeastFall) return images;
  return question.horizon;
}

PolicyRun stop_early(TrainingSource& source, const PolicyQuestion& question) {
  const Training training = source.next();
  return train(training, given_up_at(training, question));
}

PolicyRun restart(TrainingSource& source, const PolicyQuestion& question) {
  PolicyRun out;
  while (!out.reached && out.trainings < question.seeds) {
    const Training training = source.next();
    const PolicyRun one = train(training, std::min(question.horizon, training.diverged));
    out = {one.reached, out.images + one.images, out.trainings + 1};
    if (training.diverged >= question.horizon) break;
  }
  return out;
}

/// Begins `seeds` trainings. The better half goes on for twice as many images, until one is left, which has then a
/// tenth of the horizon behind it.
PolicyRun halve(TrainingSource& source, const PolicyQuestion& question) {
  std::vector<Training> left;
  for (int i = 0; i < question.seeds; ++i) left.push_back(source.next());
  PolicyRun out{false, 0, question.seeds};
  double until = question.horizon / 10, before = 0;
  for (std::size_t count = left.size(); count > 2; count = (count + 1) / 2) until /= 2;
  while (true) {
    if (left.size() == 1) until = question.horizon;
    const auto first = std::min_element(left.begin(), left.end(),
                                        [](const Training& a, const Training& b) { return a.reaches < b.reaches; });
    const double to = std::min(until, first->reaches);
    out.images += static_cast<double>(left.size()) * std::max(0.0, to - before);
    out.reached = first->reaches <= until;
    if (out.reached || left.size() == 1) return out;
    std::stable_sort(left.begin(), left.end(),
                     [&](const Training& a, const Training& b) { return a.log_best(until) < b.log_best(until); });
    left.resize((left.size() + 1) / 2);
    before = until;
    until *= 2;
  }
}

struct QualityPolicy {
  const char *name, *summary;
  PolicyRun (*run)(TrainingSource&, const PolicyQuestion&);
};
constexpr QualityPolicy kPolicies[] = {
    {"train-on", "one training until its FID or the most images", train_on},
    {"early-stop", "given up if the best FID has not fallen by 1 % over the last third of its images", stop_early},
    {"restart-if-diverged", "given up at the evaluation after it diverged, and begun anew with another seed", restart},
    {"halving", "several seeds, of which the better half goes on for twice as many images", halve}};

PolicyOutlook policy_outlook(const QualityPolicy& policy, const QualityModel& model, const PolicyQuestion& question) {
  PolicyOutlook out{.name = policy.name, .summary = policy.summary};
  TrainingSource source(model, question);
  std::vector<double> images;
  for (int i = 0; i < kWorlds; ++i) {
    source.next_world();
    const PolicyRun run = policy.run(source, question);
    if (run.reached) images.push_back(run.images);
    out.mean_images += run.images / kWorlds;
    out.mean_trainings += run.trainings;
  }
  out.mean_trainings /= kWorlds;
  out.probability = static_cast<double>(images.size()) / kWorlds;
  std::sort(images.begin(), images.end());
  if (images.size() >= kFewestSuccesses)
    out.images = {quantile(images, 0.5), quantile(images, 0.05), quantile(images, 0.95)};
  return out;
}

}  // namespace

PolicyComparison compare_quality_policies(const QualityModel& model, const PolicyQuestion& question) {
  const QualityOutlook alone = forecast_quality(model, {question.kind, {}, {question.fid}, question.horizon});
  PolicyQuestion bounded = question;
  if (question.horizon == 0) bounded.horizon = alone.targets[0].images.high;
  PolicyComparison out{bounded.horizon, {}, alone.notes};
  if (bounded.horizon == 0) return out;
  for (const QualityPolicy& policy : kPolicies) out.policies.push_back(policy_outlook(policy, model, bounded));
  return out;
}

}  // namespace ganymede::calibration
