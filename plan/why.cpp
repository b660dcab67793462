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

bool rents_the_same(const Request& request, const PlanCandidate& a, const PlanCandidate& b) {
  return request.catalogs[a.catalog].name == request.catalogs[b.catalog].name && a.instance->name == b.instance->name &&
         a.nodes == b.nodes && a.on_demand_nodes == b.on_demand_nodes && a.gpus_per_node == b.gpus_per_node &&
         a.region == b.region && a.market == b.market;
}

/// What tells a candidate from all others of a request.
std::string identity_of(const PlanCandidate& candidate) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", candidate.catalog, candidate.instance->name, candidate.region,
                     platforms::to_string(candidate.market), candidate.nodes, candidate.on_demand_nodes,
                     candidate.gpus_per_node, candidate.batch, candidate.policy->content.dump(), candidate.checkpoint);
}

/// One assumption of one plan.
class SensitivityAnalysis {
 public:
  SensitivityAnalysis(const KnownPlan& known, Assumption assumption, int jobs)
      : request_(known.request),
        chosen_(known.plan.candidates.all[*known.plan.best]),
        plan_(known.plan),
        assumption_(assumption),
        jobs_(jobs) {
    std::set<std::string> affected;
    for (const PlanCandidate& candidate : known.plan.candidates.all)
      if (affects(candidate)) affected.insert(candidate.instance->name);
    affected_.assign(affected.begin(), affected.end());
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
    find_hopeless();
    const std::vector<double> raises = values(out.now);
    stays_.emplace_back(out.now, objective_of(request_, plan_.runs[*plan_.best]));
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
        // The same nodes are chosen after all, because they are better than when they were given up.
        hopeless_.clear();
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

  bool affects(const PlanCandidate& candidate) const { return is_affected(request_, chosen_, candidate, assumption_); }

  /// Finds the best candidate that the assumption does not affect.
  void find_rival() {
    PlanOptions options;
    options.jobs = jobs_;
    options.known = &plan_;
    options.only = [&](const PlanCandidate& candidate) { return !affects(candidate); };
    options.at_most = kNothing;
    others_ = make_plan(request_, options);
    if (others_.best) rival_ = objective_of(request_, others_.runs[*others_.best]);
    for (std::size_t i = 0; i < others_.runs.size(); ++i)
      if (affects(others_.candidates.all[i]))
        others_.runs[i] = {};
      else if (others_.runs[i].verdict == Verdict::beaten)
        others_.runs[i].verdict = Verdict::impossible;  // by one that the assumption does not affect either
  }

  /// Finds the affected candidates that are no better than the rival. Raising an assumption makes nearly all of them
  /// worse still, so they need not be simulated again at each value.
  void find_hopeless() {
    if (rival_ == kNothing) return;
    PlanOptions options;
    options.jobs = jobs_;
    options.known = &plan_;
    options.only = [&](const PlanCandidate& candidate) { return affects(candidate); };
    options.at_most = rival_;
    options.all_at_most = true;
    const Plan now = make_plan(request_, options);
    for (std::size_t i = 0; i < now.runs.size(); ++i)
      if (affects(now.candidates.all[i]) &&
          (now.runs[i].verdict != Verdict::meets || objective_of(request_, now.runs[i]) > rival_))
        hopeless_.insert(identity_of(now.candidates.all[i]));
  }

  /// True if the same nodes are chosen among the affected candidates with the assumption at this value, and no other
  /// candidate is better.
  bool stays_chosen(double value) {
    Request changed = with_assumption(request_, chosen_, assumption_, value);
    changed.instances = affected_;
    PlanOptions options;
    options.jobs = jobs_;
    options.only = [&](const PlanCandidate& candidate) {
      return is_affected(changed, chosen_, candidate, assumption_) && !hopeless_.contains(identity_of(candidate));
    };
    options.at_most = rival_;
    const Plan plan = make_plan(changed, options);
    const double objective = plan.best ? objective_of(changed, plan.runs[*plan.best]) : kNothing;
    // Which of equals is chosen is decided among all.
    if (objective >= rival_) return objective == rival_ && plan.best && !choose_among_all(value);
    if (!rents_the_same(changed, plan.candidates.all[*plan.best], chosen_)) return false;
    stays_.emplace_back(value, objective);
    return true;
  }

  /// Plans with the assumption at this value, among all candidates, as a plan would that knows nothing but those that
  /// the assumption does not affect. True if it chooses other nodes or none; then `next_` is that choice.
  bool choose_among_all(double value) {
    const Request changed = with_assumption(request_, chosen_, assumption_, value);
    PlanOptions options;
    options.jobs = jobs_;
    options.known = &others_;
    options.at_most = kNothing;
    const Plan plan = make_plan(changed, options);
    next_ = plan.best ? documents::row_json(row_of(changed, plan, *plan.best)) : OrderedJson(nullptr);
    return !plan.best || !rents_the_same(changed, plan.candidates.all[*plan.best], chosen_);
  }

  const Request& request_;
  const PlanCandidate& chosen_;
  const Plan& plan_;
  Assumption assumption_;
  int jobs_;
  std::vector<std::string> affected_;             // names of the instances that the assumption affects
  std::set<std::string> hopeless_;                // identity_of() of candidates that cannot be chosen
  Plan others_;                                   // what is known of the candidates that the assumption does not affect
  double rival_ = kNothing;                       // the best objective among those
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
  std::vector<Sensitivity> answers;
  for (const Assumption assumption : kAssumptions) {
    answers.push_back(SensitivityAnalysis(known, assumption, jobs).answer());
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
