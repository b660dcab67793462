#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/process.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/choice.hpp"
#include "plan/dearer_regions.hpp"
#include "plan/evaluate.hpp"
#include "plan/outcome.hpp"

namespace ganymede::plan {
namespace {
/// Units of work that are simulated before the search checks again what is beaten. The number is fixed, because the
/// result must not depend on the number of jobs.
constexpr std::size_t kUnitsPerRound = 16;

bool is_risk(Objective objective) {
  return objective == Objective::risk_neutral || objective == Objective::risk_averse;
}

PlanMeasure read_measure(const Json& in) { return {in[0].get<double>(), in[1].get<double>(), in[2].get<double>()}; }

}  // namespace

/// The search for one request. Each candidate has the verdict `beaten` until it gets another one.
class PlanSearch {
 public:
  /// Candidates of a group that one child process simulates: either those whose nodes may be taken back, or the others.
  struct WorkUnit {
    double least = 0;  ///< the lowest bound of the objective among them; units with lower bounds are simulated first
    std::size_t group = 0;
    bool at_risk = false;
    auto operator<=>(const WorkUnit&) const = default;
  };

  PlanSearch(const Request& request, const PlanOptions& options) : request_(request), options_(options) {
    plan_.candidates = enumerate(request, options.exhaustive);
    if (options.known) plan_.runs = options.known->runs;
    plan_.runs.resize(plan_.candidates.all.size());
    dearer_ = options.exhaustive ? std::vector<bool>(plan_.runs.size())
                                 : in_dearer_region(request, plan_.candidates, options.only);
    least_ = options.at_most;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      if (plan_.runs[i].simulated()) plan_.candidates.all[i].scheme = options.known->candidates.all[i].scheme;
      if (options.only && !options.only(candidate(i))) plan_.runs[i].verdict = Verdict::impossible;
      if (plan_.runs[i].verdict == Verdict::meets) take_in(i);
    }
  }

  Plan run() {
    prepare();
    for (std::size_t first = 0; first < order_.size(); first += kUnitsPerRound)
      simulate_round(first, std::min(order_.size(), first + kUnitsPerRound));
    // If no candidate has a valid scenario, the request is wrong.
    if (plan_.simulated == 0 && !invalid_.empty() && !options_.at_most) throw ConfigError(invalid_);
    choose_answer(request_, plan_);
    return std::move(plan_);
  }

  // For PlanUnits, in place of run():

  void prepare() {
    forecast_goal();
    apply_bounds();
    order_ = units_by_bound();
  }
  const std::vector<WorkUnit>& units() const { return order_; }
  std::string unit_label(std::size_t unit) const {
    const std::vector<std::size_t> members = members_of(order_[unit]);
    const PlanCandidate& first = candidate(members.front());
    const std::string label =
        fmt::format("{}, batch {}", label_of(request_, first), request_.batches[first.batch].per_gpu);
    return members.size() == 1 ? label : fmt::format("{} and {} more like it", label, members.size() - 1);
  }
  std::size_t member_count(std::size_t unit) const { return members_of(order_[unit]).size(); }
  /// The outcome of a unit, with an answer for each member.
  Json evaluate_unit(std::size_t unit) {
    const std::vector<std::size_t> members = members_of(order_[unit]), places = unbeaten(members);
    std::vector<Json> answers(members.size(), Json{{"beaten", true}});
    if (places.empty()) return {{"answers", std::move(answers)}};
    Json outcome = evaluate(members, places, nullptr);
    for (std::size_t k = 0; k < places.size(); ++k) answers[places[k]] = std::move(outcome["answers"][k]);
    outcome["answers"] = std::move(answers);
    return outcome;
  }
  /// Takes in what evaluate_unit() returned elsewhere. `members`: those of the unit before any outcome was taken in.
  void take_unit(std::size_t unit, const Json& outcome) {
    const std::vector<std::size_t> members = members_of(order_[unit]);
    for (std::size_t place = 0; place < members.size(); ++place)
      record_answer(members[place], outcome["answers"].at(place));
  }

 private:
  const PlanCandidate& candidate(std::size_t i) const { return plan_.candidates.all[i]; }

  /// Forecasts the images to the FID at all batches, for the children to take over: it takes about as long as to
  /// simulate a candidate.
  void forecast_goal() {
    if (!request_.quality || plan_.candidates.all.empty()) return;
    const JsonNode scenario = JsonNode::wrap(scenario_of(request_, candidate(0)), request_.file, "");
    const calibration::QualityGoal& goal =
        caches_.inputs.quality(scenario.child("workload").child("quality"), request_.trace.model).goal;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const double batch = batch_of(request_, candidate(i));
      (void)goal.images(batch);
      if (is_open(i)) rule_out_if_rare(goal, batch, plan_.runs[i]);
    }
  }

  /// Rules out a run of which fewer get to the FID than must meet the goals: it is the share that its seeds have at
  /// best.
  void rule_out_if_rare(const calibration::QualityGoal& goal, double batch, PlannedRun& run) const {
    try {
      const double share = goal.at(batch).probability;
      if (share >= request_.certainty - 1e-6) return;
      run.verdict = Verdict::too_rare;
      run.probability = share;
      run.reason = fmt::format("{:.0f} % of trainings with a batch of {:g} get to an FID of {:g}, asked are {:g} %",
                               std::floor(100 * share), batch, goal.fid(), 100 * request_.certainty);
    } catch (const Infeasible&) {  // hardly any gets there, which its simulation says
    }
  }

  /// Rules out the candidates whose bounds alone miss a goal: the runs of all seeds miss it in the median, so that at
  /// least half of what the stated errors allow misses it too. Cost has two independent errors, time and price; each is
  /// as likely to raise the cost as to lower it, and with both raised it is missed, which leaves at most three
  /// quarters. The images to an FID are one more such error, which runs are drawn from: of those that need more than
  /// the median, more than half, even the upper ends miss it.
  void apply_bounds() {
    const double half = request_.quality ? 0.75 : 0.5;
    const bool surely = request_.sure && (!request_.quality || request_.certainty > 0.5);
    const bool by_time = request_.certainty > half || surely, by_cost = request_.certainty > (1 + half) / 2 || surely;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const Bounds& bounds = candidate(i).bounds;
      PlannedRun& run = plan_.runs[i];
      if (!is_open(i)) continue;
      if (by_time && request_.deadline && bounds.time_s > request_.deadline->si) {
        run.verdict = Verdict::too_slow;
        run.reason = fmt::format("needs at least {} on so many GPUs", to_string(Seconds{bounds.time_s}));
      } else if (by_cost && request_.budget && bounds.usd > usd_of(*request_.budget)) {
        run.verdict = Verdict::too_dear;
        run.reason = fmt::format("costs at least {:.2f} USD", bounds.usd);
      }
    }
  }

  /// The bound of what the request minimizes. Carbon has no bound, so the search is then ordered by cost. Each run
  /// costs at least the bound in the median. So its mean, in which half of the outcomes are above the median, is at
  /// least half of the bound, and the mean of the worst tenth at least the whole. To an FID, that holds for the half of
  /// the runs that need more images than the median.
  double objective_of(const Bounds& bounds) const {
    return request_.objective == Objective::time           ? bounds.time_s
           : request_.objective == Objective::risk_neutral ? (request_.quality ? 0.25 : 0.5) * bounds.usd_at_worst
                                                           : bounds.usd_at_worst;
  }
  double objective_of(const PlannedRun& run) const { return plan::objective_of(request_, run); }

  /// Units of candidates that are not ruled out, the most promising first.
  std::vector<WorkUnit> units_by_bound() const {
    const auto& groups = plan_.candidates.groups;
    std::vector<WorkUnit> order;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const bool at_risk : {false, true}) {
        std::optional<double> least;
        for (const std::size_t i : groups[g].members)
          if (is_open(i) && candidate(i).at_risk() == at_risk)
            least = std::min(least.value_or(objective_of(candidate(i).bounds)), objective_of(candidate(i).bounds));
        if (least) order.push_back({*least, g, at_risk});
      }
    std::sort(order.begin(), order.end());
    return order;
  }

  /// True if nothing has ruled the candidate out and it was not simulated yet.
  bool is_open(std::size_t i) const { return plan_.runs[i].verdict == Verdict::beaten && !dearer_[i]; }

  /// True if a simulated candidate is strictly faster and strictly cheaper than the bounds, and so than any run of this
  /// candidate. If this candidate's nodes cannot be taken back, it must also be worse than the best one of known risk,
  /// because the plan names that one too.
  bool is_beaten(const PlanCandidate& candidate, const Bounds& bounds) const {
    if (options_.exhaustive || request_.objective == Objective::carbon) return false;
    const double objective = objective_of(bounds);
    if (options_.at_most) return *least_ < objective;
    if (is_risk(request_.objective) && !(least_ && *least_ < objective)) return false;
    if (!candidate.at_risk() && !(least_of_known_risk_ && *least_of_known_risk_ < objective)) return false;
    return std::any_of(front_.begin(), front_.end(), [&](std::size_t other) {
      return plan_.runs[other].time_s.median < bounds.time_s && plan_.runs[other].usd_at_worst < bounds.usd_at_worst;
    });
  }

  /// The candidates of a unit that were open before anything was simulated.
  std::vector<std::size_t> members_of(const WorkUnit& unit) const {
    std::vector<std::size_t> members;
    for (const std::size_t i : plan_.candidates.groups[unit.group].members)
      if (is_open(i) && candidate(i).at_risk() == unit.at_risk) members.push_back(i);
    return members;
  }

  /// Evaluates a unit's candidates at `places` among its members, of which `first` is the first.
  Json evaluate(const std::vector<std::size_t>& members, const std::vector<std::size_t>& places, const Json& known) {
    EvaluationUnit unit{candidate(members.front()), {}};
    for (const std::size_t place : places) unit.members.push_back(candidate(members[place]));
    const IsBeaten beaten = [&](const PlanCandidate& of, const Bounds& bounds) { return is_beaten(of, bounds); };
    if (known.contains("scheme")) {  // which a unit lacks that was beaten whole
      std::vector<Json> answers;
      for (const std::size_t place : places) answers.push_back(known["answers"].at(place));
      if (Json repeated = repeat_group(request_, unit, beaten, known, answers); !repeated.is_null()) return repeated;
    }
    return evaluate_group(request_, unit, beaten, caches_);
  }

  /// Places among a unit's members of those that no simulated candidate beats by their bounds.
  std::vector<std::size_t> unbeaten(const std::vector<std::size_t>& members) const {
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < members.size(); ++place)
      if (!is_beaten(candidate(members[place]), candidate(members[place]).bounds)) places.push_back(place);
    return places;
  }

  /// Simulates the units from `first` to `end` in parallel.
  void simulate_round(std::size_t first, std::size_t end) {
    struct Work {
      std::size_t unit;
      std::vector<std::size_t> members, places;
    };
    std::vector<Work> work;
    for (std::size_t unit = first; unit < end; ++unit) {
      std::vector<std::size_t> members = members_of(order_[unit]);
      std::vector<std::size_t> places = unbeaten(members);
      if (!places.empty()) work.push_back({unit, std::move(members), std::move(places)});
    }
    // One child process simulates a unit, because its members share their steps.
    const auto outcomes = run_children(
        work.size(), options_.jobs,
        [&](std::size_t w) {
          const Json known = options_.known_outcome ? options_.known_outcome(work[w].unit) : Json();
          return evaluate(work[w].members, work[w].places, known).dump();
        },
        [&](std::size_t finished) {
          if (options_.progress) options_.progress(first + finished, order_.size());
        },
        ChildUse::reused);
    for (std::size_t w = 0; w < work.size(); ++w) {
      rethrow(outcomes[w]);
      const Json outcome = Json::parse(outcomes[w].text);
      // The other unit of the group need not search for the fastest scheme again.
      for (const std::size_t i : plan_.candidates.groups[order_[work[w].unit].group].members)
        plan_.candidates.all[i].scheme = outcome["scheme"].get<std::string>();
      for (std::size_t k = 0; k < work[w].places.size(); ++k)
        record_answer(work[w].members[work[w].places[k]], outcome["answers"][k]);
    }
  }

  /// Enters the answer of evaluate_group() for candidate `i`.
  void record_answer(std::size_t i, const Json& answer) {
    if (answer.contains("beaten")) return;
    PlannedRun& run = plan_.runs[i];
    for (const char* why : {"impossible", "invalid"})
      if (answer.contains(why)) {
        run.verdict = Verdict::impossible;
        run.reason = answer[why].get<std::string>();
        if (std::string_view(why) == "invalid" && invalid_.empty()) invalid_ = run.reason;
        return;
      }
    ++plan_.simulated;
    run.time_s = read_measure(answer["time"]);
    run.usd = read_measure(answer["usd"]);
    run.kg_co2e = read_measure(answer["kg"]);
    run.usd_at_worst = answer["usd_at_worst"].get<double>();
    if (!answer["usd_expected"].is_null()) run.usd_expected = answer["usd_expected"].get<double>();
    if (!answer["usd_worst_tenth"].is_null()) run.usd_worst_tenth = answer["usd_worst_tenth"].get<double>();
    run.usd_per_image = answer.value("usd_per_image", 0.0);
    run.probability = answer["probability"].get<double>();
    run.seeds = answer["seeds"].get<int>();
    run.never_finish = answer["never_finish"].get<int>();
    run.risk = answer["risk"];
    run.carbon_known = answer["carbon_known"].get<bool>();
    run.gpu_busy = answer["busy"].get<double>();
    run.images_per_s = answer["images_per_s"].get<double>();
    run.losses = answer["losses"].get<double>();
    run.met_share = answer["met"].get<double>();
    run.inputs = answer["inputs"];
    run.warnings = answer["warnings"].get<std::vector<std::string>>();
    const bool meets =
        run.probability >= request_.certainty - 1e-9 && (!request_.sure || run.met_share >= request_.certainty - 1e-12);
    run.verdict = meets ? Verdict::meets : Verdict::misses;
    if (meets)
      take_in(i);
    else
      run.reason = describe_miss(request_, run);
  }

  /// Lets candidate `i`, which meets the goals, beat others.
  void take_in(std::size_t i) {
    const PlannedRun& run = plan_.runs[i];
    add_to_front(i);
    least_ = std::min(least_.value_or(objective_of(run)), objective_of(run));
    if (run.risk_is_known())
      least_of_known_risk_ = std::min(least_of_known_risk_.value_or(objective_of(run)), objective_of(run));
  }

  /// Adds candidate `i` to the front, unless another one beats it, and removes those that it beats.
  void add_to_front(std::size_t i) {
    const auto beats = [&](std::size_t a, std::size_t b) {
      return plan_.runs[a].time_s.median <= plan_.runs[b].time_s.median &&
             plan_.runs[a].usd_at_worst <= plan_.runs[b].usd_at_worst;
    };
    if (std::any_of(front_.begin(), front_.end(), [&](std::size_t other) { return beats(other, i); })) return;
    std::erase_if(front_, [&](std::size_t other) { return beats(i, other); });
    front_.push_back(i);
  }

  const Request& request_;
  const PlanOptions& options_;
  Plan plan_;
  EvaluationCaches caches_;
  std::vector<bool> dearer_;                   // in_dearer_region() of each candidate
  std::vector<std::size_t> front_;             // candidates that meet the goals and that no simulated one beats
  std::optional<double> least_;                // the lowest objective among those, or PlanOptions::below
  std::optional<double> least_of_known_risk_;  // the lowest objective among those of known risk
  std::vector<WorkUnit> order_;                // the units that are not ruled out, the most promising first
  std::string invalid_;                        // why the first invalid scenario is invalid
};

double objective_of(const Request& request, const PlannedRun& run) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  switch (request.objective) {
    case Objective::cost:
      return run.usd_at_worst;
    case Objective::time:
      return run.time_s.median;
    case Objective::carbon:
      return run.carbon_known ? run.kg_co2e.median : kNone;
    case Objective::risk_neutral:
      return run.usd_expected.value_or(kNone);
    case Objective::risk_averse:
      return run.usd_worst_tenth.value_or(kNone);
  }
  return kNone;
}

std::size_t Plan::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const PlannedRun& run) { return run.verdict == verdict; }));
}

Plan make_plan(const Request& request, const PlanOptions& options) { return PlanSearch(request, options).run(); }

struct PlanUnits::State {
  State(const Request& request, PlanOptions how) : options(std::move(how)), search(request, options) {
    search.prepare();
    taken.resize(search.units().size());
  }
  PlanOptions options;
  PlanSearch search;
  std::vector<bool> taken;
  std::map<std::size_t, Json> waiting;  ///< outcomes of units that are not taken in yet
};

PlanUnits::PlanUnits(const Request& request, const PlanOptions& options)
    : state_(std::make_unique<State>(request, options)) {}
PlanUnits::~PlanUnits() = default;

std::size_t PlanUnits::size() const { return state_->search.units().size(); }
std::string PlanUnits::label(std::size_t unit) const { return state_->search.unit_label(unit); }

void PlanUnits::check(std::size_t unit, const JsonNode& outcome) const {
  check_outcome(outcome, state_->search.member_count(unit));
}

void PlanUnits::learn(std::size_t unit, const Json& outcome) {
  if (!state_->taken[unit]) state_->waiting.try_emplace(unit, outcome);
}

Json PlanUnits::evaluate(std::size_t unit) {
  auto& waiting = state_->waiting;
  const auto end = waiting.lower_bound(unit / kUnitsPerRound * kUnitsPerRound);
  for (auto known = waiting.begin(); known != end; ++known) {
    state_->search.take_unit(known->first, known->second);
    state_->taken[known->first] = true;
  }
  waiting.erase(waiting.begin(), end);
  return state_->search.evaluate_unit(unit);
}

}  // namespace ganymede::plan
