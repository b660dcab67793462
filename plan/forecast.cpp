#include "plan/forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "plan/pace.hpp"

namespace ganymede::plan {
namespace {

/// Half the width of an interval of 90 % of a normal distribution, in standard deviations.
constexpr double kNormal90 = 1.6449;
/// Fitted to the 32 logs of PyTorch-StudioGAN (POSTECH-CVLab/PyTorch-StudioGAN at 947b35e9835b, MIT), each forecast at
/// a share f of its steps by forecast(): of 29 to 31, the total was off by less than 0.18 (1 - f)^1.3 in its logarithm
/// at shares from 0.05 to 0.8; the others stood still for days or changed their pace later. `bench/forecasts.py` shows
/// them.
constexpr double kWidth = 0.18, kWidthPower = 1.3;
/// Shares of the same forecasts whose error is below so many widths. Most runs are far closer.
struct Quantile {
  double share, widths;
};
constexpr std::array<Quantile, 5> kErrors{{{0, 0}, {0.5, 0.04}, {0.8, 0.2}, {0.9, 1}, {1, 4}}};

/// Counts steps by their work: in all as many as steps, but the longer ones of later stages count for more.
class Work {
 public:
  Work(const std::vector<StageWork>& stages, double planned) : stages_(stages), planned_(planned) {
    for (const StageWork& stage : stages) mean_s_ += stage.share * stage.step_s;
  }
  double until(double step) const {
    if (mean_s_ <= 0) return step;
    double work = 0, begin = 0;
    for (const StageWork& stage : stages_) {
      const double end = begin + stage.share * planned_;
      work += std::clamp(step - begin, 0.0, end - begin) * stage.step_s / mean_s_;
      begin = end;
    }
    return work;
  }

 private:
  const std::vector<StageWork>& stages_;
  double planned_ = 0, mean_s_ = 0;
};

std::vector<Stretch> stretches(const RunLog& log, const Work& work) {
  const auto until = [&](std::int64_t step) {
    return work.until(static_cast<double>(step)) - work.until(static_cast<double>(log.begin_step));
  };
  std::vector<Stretch> out;
  std::size_t pause = 0;
  for (std::size_t i = 1; i < log.steps.size(); ++i) {
    const LoggedStep &from = log.steps[i - 1], &to = log.steps[i];
    Stretch stretch{until(from.step), until(to.step), to.unix_s - from.unix_s};
    for (; pause < log.pauses.size() && log.pauses[pause].unix_s <= to.unix_s; ++pause)
      stretch.seconds -= log.pauses[pause].seconds;
    stretch.seconds = std::max(stretch.seconds, 0.0);
    if (stretch.to > stretch.from && !to.clock_set) out.push_back(stretch);
  }
  if (std::all_of(out.begin(), out.end(), [](const Stretch& part) { return part.seconds == 0; })) return {};
  return out;
}

/// Pauses of one name that come again.
struct Recurring {
  double last_step = 0, every = 0;  ///< steps
  double seconds = 0;               ///< of one pause
  /// How many of them come until a step.
  double until(double step) const { return std::floor((step - last_step) / every + 1e-6); }
};

/// `lone` gets the names of pauses whose period is not known.
std::vector<Recurring> recurring_pauses(const RunLog& log, const PlannedPauses& planned,
                                        std::vector<std::string>& lone) {
  struct Kind {
    std::int64_t first_step = 0, last_step = 0;
    double seconds = 0;
    int count = 0;  // pauses after the same step, such as evaluations of several metrics, count once
  };
  std::map<std::string, Kind> kinds;
  for (const LoggedPause& pause : log.pauses) {
    if (pause.what == "interruption") continue;  // Nobody plans them; the interval allows for them.
    Kind& kind = kinds[pause.what];
    if (kind.count == 0) kind.first_step = pause.step;
    if (kind.count == 0 || kind.last_step != pause.step) ++kind.count;
    kind.last_step = pause.step;
    kind.seconds += pause.seconds;
  }
  std::vector<Recurring> out;
  for (const auto& [what, kind] : kinds) {
    // A single pause tells no period: many trainings evaluate after their first step, and then rarely.
    const auto known = planned.find(what);
    const double every = kind.count > 1 ? static_cast<double>(kind.last_step - kind.first_step) / (kind.count - 1)
                         : known == planned.end() ? 0
                                                  : known->second.every;
    if (every > 0)
      out.push_back({static_cast<double>(kind.last_step), every, kind.seconds / kind.count});
    else
      lone.push_back(what);
  }
  // One that was due and is not in the log was made without a word: it is in the pace of the steps.
  const auto begin = static_cast<double>(log.begin_step);
  for (const auto& [what, pause] : planned)
    if (!kinds.contains(what) && pause.seconds > 0 && static_cast<double>(log.done()) - begin < pause.every)
      out.push_back({begin, pause.every, pause.seconds});
  return out;
}

}  // namespace

double RunForecast::chance_within(double seconds) const {
  if (seconds <= elapsed_s && done_share < 1) return 0;
  if (total_s.high <= total_s.low) return seconds >= total_s.median ? 1 : 0;
  const double off = std::log(seconds / total_s.median);
  const double widths =
      std::abs(off) / (off < 0 ? std::log(total_s.median / total_s.low) : std::log(total_s.high / total_s.median));
  double below = kErrors.back().share;
  for (std::size_t i = 1; i < kErrors.size(); ++i)
    if (widths < kErrors[i].widths) {
      const Quantile &from = kErrors[i - 1], &to = kErrors[i];
      below = from.share + (to.share - from.share) * (widths - from.widths) / (to.widths - from.widths);
      break;
    }
  return off < 0 ? (1 - below) / 2 : (1 + below) / 2;
}

RunForecast forecast(const RunLog& log, const std::optional<StepPrior>& prior, const std::vector<StageWork>& stages,
                     const PlannedPauses& planned) {
  RunForecast out;
  const double all = static_cast<double>(log.planned - log.begin_step);
  const double done = static_cast<double>(log.done() - log.begin_step);
  const double left = all - done;
  out.done_share = all > 0 ? done / all : 1;
  out.elapsed_s = log.last_unix_s - log.begin_unix_s;
  for (const LoggedPause& pause : log.pauses) out.paused_s += pause.seconds;
  const std::vector<Recurring> pauses = recurring_pauses(log, planned, out.lone_pauses);
  for (const Recurring& pause : pauses) out.pause_s += pause.seconds / pause.every;
  const Work work(stages, static_cast<double>(log.planned));
  const double work_left = work.until(static_cast<double>(log.planned)) - work.until(static_cast<double>(log.done()));
  const std::vector<Stretch> parts = stretches(log, work);
  const Pace seen = parts.empty() ? Pace{} : pace(parts, work_left);
  const double width = kWidth * std::pow(1 - out.done_share, kWidthPower);
  if (log.end == "finished" || left <= 0) {
    out.observed = true;
    out.step_s = seen.step_s;
    out.total_s = {out.elapsed_s, out.elapsed_s, out.elapsed_s};
    return out;
  }
  if (seen.step_s <= 0) {
    if (!prior) return out;
    out.step_s = prior->seconds.median;
    const auto total = [&](double step_s) { return out.elapsed_s + work_left * step_s; };
    out.total_s = {total(prior->seconds.median), total(prior->seconds.low), total(prior->seconds.high)};
    return out;
  }
  out.observed = true;
  double log_step = std::log(seen.step_s), variance = seen.log_sd * seen.log_sd;
  if (prior && prior->seconds.low > 0 && prior->seconds.high > prior->seconds.low) {
    const double prior_sd = std::log(prior->seconds.high / prior->seconds.low) / (2 * kNormal90);
    const double weight = std::isinf(variance) ? 0.5 : prior_sd * prior_sd / (prior_sd * prior_sd + variance);
    log_step = weight * log_step + (1 - weight) * std::log(prior->seconds.median);
    variance = (std::isinf(variance) ? prior_sd * prior_sd : variance) * weight;
  } else if (std::isinf(variance)) {
    variance = 1;  // One stretch alone says nothing about how steps vary: a factor of 5 either way.
  }
  out.step_s = std::exp(log_step);  // of a step of mean work, as the plan's
  for (const Recurring& pause : pauses)
    out.pauses_left_s += pause.until(static_cast<double>(log.planned)) * pause.seconds;
  const double rest = work_left * out.step_s + out.pauses_left_s;
  const double median = out.elapsed_s + rest;
  const double half = std::hypot(width, kNormal90 * std::sqrt(variance) * rest / median);
  out.total_s = {median, std::max(out.elapsed_s, median * std::exp(-half)), median * std::exp(half)};
  return out;
}

}  // namespace ganymede::plan
