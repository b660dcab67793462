#include "plan/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace ganymede::plan {
namespace {

/// Factors by which a price, the step time or interruptions are raised, until the choice changes.
constexpr double kRaises[] = {1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50};
constexpr double kNearEnough = 1.0002;
/// Seconds that are added to the time to boot.
constexpr double kLonger_s[] = {60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 10 * 24 * 3600};
constexpr double kNearEnough_s = 1;
/// How often a change is looked for from where it was found if the choice stays there, because a candidate that was
/// given up turned out to be better; then the next raise is looked at.
constexpr int kTriesMax = 3;
/// Values that are tried beside predicted ones: so far beside, relative to what is near enough, and so many. Two of
/// them on both sides of a change are near enough even if the prediction between them has moved by as much.
constexpr double kBeside = 0.3;
constexpr int kGuessesMax = 8;
/// The objective if nothing meets the goals.
constexpr double kNothing = std::numeric_limits<double>::infinity();
/// A raised assumption makes no candidate better but by luck, as where nodes that start later escape an interruption:
/// its objective is taken to be at least this share of what it was, and its chance at most this much higher.
constexpr double kLuck = 0.9, kLuckOfChance = 0.01;

bool rents_the_same(const Request& request, const PlanCandidate& a, const PlanCandidate& b) {
  return request.catalogs[a.catalog].name == request.catalogs[b.catalog].name && a.instance->name == b.instance->name &&
         a.nodes == b.nodes && a.on_demand_nodes == b.on_demand_nodes && a.gpus_per_node == b.gpus_per_node &&
         a.region == b.region && a.market == b.market;
}

/// A candidate of which nothing is known but its bounds.
PlannedRun by_bounds(const PlanCandidate& candidate) {
  PlannedRun run;
  run.at_least = {candidate.bounds.time_s, candidate.bounds.usd_at_worst};
  return run;
}

/// One assumption of one plan.
class SensitivityAnalysis {
 public:
  /// `now` holds what is known of the plan's candidates with all assumptions as they are, and gets what is found out.
  SensitivityAnalysis(const Request& request, Plan& now, Assumption assumption, int jobs)
      : request_(request), chosen_(now.candidates.all[*now.best]), now_(now), assumption_(assumption), jobs_(jobs) {
    for (const PlanCandidate& candidate : now.candidates.all)
      affected_.push_back(is_affected(request, chosen_, candidate, assumption));
  }

  Sensitivity answer() {
    Sensitivity out;
    out.assumption = assumption_;
    out.now = out.tried = value_of(request_, chosen_, assumption_);
    if (assumption_ == Assumption::interruptions && !chosen_.at_risk()) {
      out.without = "nobody takes these nodes back";
      return out;
    }
    if ((assumption_ == Assumption::price || assumption_ == Assumption::prices) && out.now == 0) {
      out.without = "no price is paid for these nodes, whose cost is their electricity";
      return out;
    }
    if (assumption_ == Assumption::prices && !sold_elsewhere()) {
      out.without = "these nodes are sold in one region only";
      return out;
    }
    find_rival();
    const std::vector<double> raises = values(out.now);
    stays_.emplace_back(out.now, objective_of(request_, now_.runs[*now_.best]));
    double low = out.now;
    std::optional<double> high;
    for (int again = 0; low < raises.back();) {
      if (!high || !near_enough(low, *high)) {
        const double value = next_value(low, high, raises);
        out.tried = std::max(out.tried, value);
        stays_chosen(value) ? low = value : high.emplace(value);
      } else if (choose_among_all(*high)) {
        out.threshold = high;
        out.next = next_;
        return out;
      } else {
        // The same nodes are chosen after all, because they are better than was expected.
        for (std::size_t i = 0; i < affected_.size(); ++i)
          if (affected_[i]) expected_.runs[i] = by_bounds(now_.candidates.all[i]);
        low = ++again % kTriesMax == 0 ? *std::ranges::upper_bound(raises, low) : *high;
        high.reset();
      }
    }
    return out;
  }

 private:
  bool sold_elsewhere() const {
    return std::any_of(chosen_.instance->prices.begin(), chosen_.instance->prices.end(),
                       [&](const platforms::Price& price) {
                         return price.market == chosen_.market && price.region != chosen_.region;
                       });
  }

  std::vector<double> values(double now) const {
    std::vector<double> out;
    if (assumption_ == Assumption::boot)
      for (const double more : kLonger_s) out.push_back(now + more);
    else
      for (const double raise : kRaises) out.push_back(now * raise);
    return out;
  }

  bool near_enough(double low, double high) const {
    return assumption_ == Assumption::boot ? high - low <= kNearEnough_s : high <= kNearEnough * low;
  }

  /// The value at which the choice costs as much as the rival, by a line through the last two values at which it was
  /// the choice, or in proportion to the only one. None if the rival does not decide, or if it is not known how the
  /// choice grows; infinite if it does not grow.
  std::optional<double> predicted() const {
    const auto [value, objective] = stays_.back();
    const bool steady = assumption_ != Assumption::interruptions, from_zero = assumption_ != Assumption::boot;
    if (!steady || rival_ == kNothing || (stays_.size() < 2 && !from_zero)) return {};
    const auto [before, less] = stays_.size() < 2 ? std::pair(0.0, 0.0) : stays_[stays_.size() - 2];
    const double slope = (objective - less) / (value - before);
    return slope > 0 ? value + (rival_ - objective) / slope : kNothing;
  }

  /// A value above `low`, where the choice stays, and below `high`, where it does not: beside the predicted one, first
  /// below it and then above, else in the middle or the next raise.
  double next_value(double low, const std::optional<double>& high, const std::vector<double>& raises) {
    if (const auto meeting = predicted(); meeting && guesses_ < kGuessesMax) {
      const double beside = kBeside * (assumption_ == Assumption::boot ? kNearEnough_s : (kNearEnough - 1) * *meeting);
      const double value = *meeting == kNothing               ? raises.back()
                           : *meeting - beside > low + beside ? *meeting - beside
                                                              : *meeting + beside;
      if (value > low && (!high || value < *high)) {
        ++guesses_;
        return std::min(value, raises.back());
      }
    }
    return high ? (low + *high) / 2 : *std::ranges::upper_bound(raises, low);
  }

  PlanOptions options_with(const Plan& known, double at_most) const {
    PlanOptions options;
    options.jobs = jobs_;
    options.known = &known;
    options.at_most = at_most;
    return options;
  }

  /// Finds the best of the candidates that the assumption affects, or of the others, with all as it is; with `all` each
  /// that is no worse than `at_most`. Keeps what is then known of them.
  std::optional<std::size_t> find_now(bool affected, double at_most, bool all) {
    PlanOptions options = options_with(now_, at_most);
    options.all_at_most = all;
    options.only = [&](const PlanCandidate& candidate) {
      return is_affected(request_, chosen_, candidate, assumption_) == affected;
    };
    Plan found = make_plan(request_, options);
    for (std::size_t i = 0; i < found.runs.size(); ++i) {
      if (affected_[i] != affected) continue;
      now_.runs[i] = std::move(found.runs[i]);
      now_.candidates.all[i].scheme = found.candidates.all[i].scheme;
    }
    return found.best;
  }

  /// Finds the best candidate that the assumption does not affect, and what the others will be at least.
  void find_rival() {
    if (const auto rival = find_now(false, kNothing, false)) rival_ = objective_of(request_, now_.runs[*rival]);
    find_now(true, rival_ / kLuck, rival_ < kNothing);
    expected_ = now_;
    for (std::size_t i = 0; i < affected_.size(); ++i) {
      const PlannedRun& now = now_.runs[i];
      if (!affected_[i] && now.verdict == Verdict::beaten)  // by one that the assumption does not affect either
        expected_.runs[i].verdict = Verdict::impossible;
      if (!affected_[i]) continue;
      PlannedRun& run = expected_.runs[i] = {};
      const bool near = now.simulated() && now.probability >= request_.certainty - kLuckOfChance;
      if (!near && now.verdict != Verdict::beaten) run.verdict = Verdict::impossible;
      run.at_least = near ? RunsAtLeast{now.time_s.median, now.usd_at_worst} : now.at_least;
      run.at_least = {kLuck * run.at_least.time_s, kLuck * run.at_least.usd_at_worst};
    }
  }

  /// Plans among the affected candidates that rent the same as the choice, or among those that do not, if they may be
  /// no worse than `at_most`. Of the latter any one is enough, as it only tells that the choice does not stay.
  Plan plan_affected(Request changed, bool same, double at_most) const {
    std::vector<bool> counts(affected_.size());
    std::set<Family> families;
    std::set<std::string> names;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const PlanCandidate& candidate = expected_.candidates.all[i];
      const RunsAtLeast& least = expected_.runs[i].at_least;
      counts[i] = affected_[i] && rents_the_same(request_, candidate, chosen_) == same;
      // Nothing is known of those for which another one stands, as in a dearer region.
      const bool better = least_objective(request_, {least.time_s, 0, least.usd_at_worst}) <= at_most;
      if (!counts[i] || least.time_s == 0 || !(better || request_.objective == Objective::carbon)) continue;
      families.insert(family_of(candidate));
      names.insert(candidate.instance->name);
    }
    if (families.empty()) return {};
    changed.instances.assign(names.begin(), names.end());
    Plan known;  // of the same candidates as `changed` has, in the same order
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!families.contains(family_of(expected_.candidates.all[i]))) continue;
      known.candidates.all.push_back(expected_.candidates.all[i]);
      known.runs.push_back(expected_.runs[i]);
      if (!counts[i]) known.runs.back().verdict = Verdict::impossible;
    }
    PlanOptions options = options_with(known, at_most);
    options.only = [&](const PlanCandidate& candidate) {
      return is_affected(changed, chosen_, candidate, assumption_);
    };
    options.families = std::move(families);
    if (!same) options.effort = Effort::quick;
    return make_plan(changed, options);
  }

  /// True if the same nodes are chosen among the affected candidates with the assumption at this value, and no other
  /// candidate is better.
  bool stays_chosen(double value) {
    const Request changed = with_assumption(request_, chosen_, assumption_, value);
    const auto best_of = [&](const Plan& plan) {
      return plan.best ? objective_of(changed, plan.runs[*plan.best]) : kNothing;
    };
    const double own = best_of(plan_affected(changed, true, rival_));
    if (own == kNothing || own > rival_) return false;
    const double other = std::min(rival_, best_of(plan_affected(changed, false, own)));
    // Which of equals is chosen is decided among all.
    if (other < own || (other == own && choose_among_all(value))) return false;
    stays_.emplace_back(value, own);
    return true;
  }

  /// Plans with the assumption at this value, among all candidates. True if it chooses other nodes or none; then
  /// `next_` is that choice.
  bool choose_among_all(double value) {
    const Request changed = with_assumption(request_, chosen_, assumption_, value);
    const Plan plan = make_plan(changed, options_with(expected_, kNothing));
    next_ = plan.best ? documents::row_json(row_of(changed, plan, *plan.best)) : OrderedJson(nullptr);
    return !plan.best || !rents_the_same(changed, plan.candidates.all[*plan.best], chosen_);
  }

  const Request& request_;
  const PlanCandidate& chosen_;
  Plan& now_;  // what is known with all assumptions as they are
  Assumption assumption_;
  int jobs_;
  std::vector<bool> affected_;  // for each candidate, whether the assumption affects it
  Plan expected_;               // the same as `now_` of the others, and what the affected are at least with it raised
  double rival_ = kNothing;     // the best objective of the others
  std::vector<std::pair<double, double>> stays_;  // values at which the choice stays and its objective there, ascending
  int guesses_ = 0;                               // values that predicted() was taken for
  OrderedJson next_ = nullptr;
};

const char* unit_of(Assumption assumption) {
  return assumption == Assumption::price || assumption == Assumption::prices ? "USD/h"
         : assumption == Assumption::boot                                    ? "s"
                                                                             : "factor";
}

}  // namespace

std::vector<Sensitivity> why(const KnownPlan& known, int jobs, const std::function<void(std::size_t)>& progress) {
  Plan now = known.plan;
  std::vector<Sensitivity> answers;
  for (const Assumption assumption : kAssumptions) {
    answers.push_back(SensitivityAnalysis(known.request, now, assumption, jobs).answer());
    if (progress) progress(answers.size());
  }
  return answers;
}

std::string why_json(const KnownPlan& known, const std::vector<Sensitivity>& answers, const Json& file) {
  using OrderedAnswer = OrderedJson;
  OrderedAnswer out;
  out["schema"] = "ganymede.why/1";
  out["request"] = file.at("request");
  out["chosen"] = documents::row_json(row_of(known.request, known.plan, *known.plan.best));
  out["steps"] = OrderedAnswer::array();
  for (const auto& step : file.value("steps", Json::array()))
    if (step.value("gpu", "") == out["chosen"]["gpu"] &&
        step.value("batch_per_gpu", 0) == out["chosen"]["batch_per_gpu"].get<int>())
      out["steps"].push_back(OrderedAnswer(step));
  out["hangs_on"] = OrderedAnswer::array();
  for (const Sensitivity& answer : answers) {
    OrderedAnswer one = {{"what", to_string(answer.assumption)},
                         {"unit", unit_of(answer.assumption)},
                         {"now", answer.now},
                         {"tried", answer.tried}};
    one["threshold"] = answer.threshold ? OrderedAnswer(*answer.threshold) : OrderedAnswer(nullptr);
    one["to"] = answer.next;
    one["without"] = answer.without.empty() ? OrderedAnswer(nullptr) : OrderedAnswer(answer.without);
    out["hangs_on"].push_back(std::move(one));
  }
  out["provenance"] = {{"tool", "ganymede " GANYMEDE_VERSION}};
  return out.dump(2) + "\n";
}

}  // namespace ganymede::plan
