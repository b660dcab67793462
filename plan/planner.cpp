#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "plan/evaluate.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

/// Units of work simulated between two looks at what is beaten by now. Fixed: the result must not depend on the
/// machine.
constexpr std::size_t kUnitsARound = 16;
constexpr std::size_t kNear = 5;

/// Candidates of a group that are simulated together: those that may be taken back, or the others, which are compared
/// among themselves.
struct Unit {
  double least = 0;  ///< of the bounds of what is to be minimized
  std::size_t group = 0;
  bool at_risk = false;
  auto operator<=>(const Unit&) const = default;
};

double dollars(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

PlanMeasure read_measure(const Json& in) { return {in[0].get<double>(), in[1].get<double>(), in[2].get<double>()}; }

class Search {
 public:
  Search(const Request& request, const PlanOptions& options) : request_(request), options_(options) {
    plan_.candidates = enumerate(request, options.exhaustive);
    plan_.runs.resize(plan_.candidates.all.size());
  }

  Plan run() {
    bound();
    const std::vector<Unit> order = by_bound();
    units_ = order.size();
    for (std::size_t first = 0; first < order.size(); first += kUnitsARound)
      round({order.begin() + static_cast<std::ptrdiff_t>(first),
             order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), first + kUnitsARound))},
            first);
    // Wrong for all is wrong in the request.
    if (plan_.simulated == 0 && !invalid_.empty()) throw ConfigError(invalid_);
    choose();
    return std::move(plan_);
  }

 private:
  const PlanCandidate& candidate(std::size_t i) const { return plan_.candidates.all[i]; }

  void bound() {
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const Bounds& bounds = candidate(i).bounds;
      PlannedRun& run = plan_.runs[i];
      if (request_.deadline && bounds.time_s > request_.deadline->si) {
        run.verdict = Verdict::too_slow;
        run.reason = fmt::format("needs at least {} on so many GPUs", to_string(Seconds{bounds.time_s}));
      } else if (request_.budget && bounds.usd > dollars(*request_.budget)) {
        run.verdict = Verdict::too_dear;
        run.reason = fmt::format("costs at least {:.2f} USD", bounds.usd);
      }
    }
  }

  double value(const Bounds& bounds) const {
    return request_.objective == Objective::time ? bounds.time_s : bounds.usd_at_worst;
  }
  double value(const PlannedRun& run) const {
    return request_.objective == Objective::time     ? run.time_s.median
           : request_.objective == Objective::carbon ? run.kg_co2e.median
                                                     : run.usd_at_worst;
  }

  /// What holds something to simulate, the most promising first.
  std::vector<Unit> by_bound() const {
    const auto& groups = plan_.candidates.groups;
    std::vector<Unit> order;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const bool at_risk : {false, true}) {
        std::optional<double> least;
        for (const std::size_t i : groups[g].members)
          if (open(i) && candidate(i).at_risk() == at_risk)
            least = std::min(least.value_or(value(candidate(i).bounds)), value(candidate(i).bounds));
        if (least) order.push_back({*least, g, at_risk});
      }
    std::sort(order.begin(), order.end());
    return order;
  }

  bool open(std::size_t i) const { return plan_.runs[i].verdict == Verdict::beaten; }

  /// Something is strictly faster and strictly cheaper than the bounds: so than any run of the candidate. What nobody
  /// takes back must be beaten as the best of its kind too.
  bool beaten(const PlanCandidate& candidate, const Bounds& bounds) const {
    if (options_.exhaustive || request_.objective == Objective::carbon) return false;
    if (!candidate.at_risk() && !(least_of_known_risk_ && *least_of_known_risk_ < value(bounds))) return false;
    return std::any_of(front_.begin(), front_.end(), [&](std::size_t other) {
      return plan_.runs[other].time_s.median < bounds.time_s && plan_.runs[other].usd_at_worst < bounds.usd_at_worst;
    });
  }

  void round(const std::vector<Unit>& units, std::size_t done) {
    std::vector<std::vector<std::size_t>> work;
    std::vector<std::size_t> origin;  // the group of each
    for (const Unit& unit : units) {
      std::vector<std::size_t> members;
      for (const std::size_t i : plan_.candidates.groups[unit.group].members)
        if (open(i) && candidate(i).at_risk() == unit.at_risk && !beaten(candidate(i), candidate(i).bounds))
          members.push_back(i);
      if (members.empty()) continue;
      work.push_back(std::move(members));
      origin.push_back(unit.group);
    }
    // A unit in one child: its members share their steps.
    const auto outcomes = run_children(
        work.size(), options_.jobs,
        [&](std::size_t u) {
          std::vector<PlanCandidate> members;
          for (const std::size_t i : work[u]) members.push_back(candidate(i));
          return evaluate_group(
                     request_, members,
                     [&](const PlanCandidate& of, const Bounds& bounds) { return beaten(of, bounds); }, caches_)
              .dump();
        },
        [&](std::size_t finished) {
          if (options_.progress) options_.progress(done + finished, units_);
        },
        ChildUse::reused);
    for (std::size_t u = 0; u < work.size(); ++u) {
      rethrow(outcomes[u]);
      const Json outcome = Json::parse(outcomes[u].text);
      // The others of the group, which wait for their turn, need not look for it again.
      for (const std::size_t i : plan_.candidates.groups[origin[u]].members)
        plan_.candidates.all[i].scheme = outcome["scheme"].get<std::string>();
      for (std::size_t k = 0; k < work[u].size(); ++k) land(work[u][k], outcome["answers"][k]);
    }
  }

  void land(std::size_t i, const Json& answer) {
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
    run.usd_at_worst = answer["usd_at_worst"];
    run.seeds = answer["seeds"];
    run.never_finish = answer["never_finish"];
    run.risk = answer["risk"];
    run.carbon_known = answer["carbon_known"];
    run.gpu_busy = answer["busy"];
    run.losses = answer["losses"];
    run.met_share = answer["met"];
    run.inputs = answer["inputs"];
    run.warnings = answer["warnings"].get<std::vector<std::string>>();
    const bool meets = run.met_share >= request_.certainty - 1e-12;
    run.verdict = meets ? Verdict::meets : Verdict::misses;
    if (!meets) run.reason = miss(run);
    if (!meets) return;
    join_front(i);
    if (run.risk_is_known()) least_of_known_risk_ = std::min(least_of_known_risk_.value_or(value(run)), value(run));
  }

  /// Keeps those that nothing else beats.
  void join_front(std::size_t i) {
    const auto beats = [&](std::size_t a, std::size_t b) {
      return plan_.runs[a].time_s.median <= plan_.runs[b].time_s.median &&
             plan_.runs[a].usd_at_worst <= plan_.runs[b].usd_at_worst;
    };
    if (std::any_of(front_.begin(), front_.end(), [&](std::size_t other) { return beats(other, i); })) return;
    std::erase_if(front_, [&](std::size_t other) { return beats(i, other); });
    front_.push_back(i);
  }

  /// Equal ones: the faster, then the first.
  bool better(std::size_t a, const std::optional<std::size_t>& b) const {
    if (!b) return true;
    const std::tuple x(value(plan_.runs[a]), plan_.runs[a].time_s.median, a);
    return x < std::tuple(value(plan_.runs[*b]), plan_.runs[*b].time_s.median, *b);
  }

  std::string miss(const PlannedRun& run) const {
    std::string why;
    const double time_s = request_.sure ? run.time_s.high : run.time_s.median;
    const double usd = request_.sure ? run.usd.high : run.usd.median;
    const char* up_to = request_.sure ? " up to" : "";
    if (request_.deadline && time_s > request_.deadline->si)
      why = fmt::format("takes{} {} (deadline {})", up_to, to_string(Seconds{time_s}), to_string(*request_.deadline));
    if (request_.budget && usd > dollars(*request_.budget))
      why += fmt::format("{}costs{} {:.2f} USD (budget {})", why.empty() ? "" : " and ", up_to, usd,
                         to_string(*request_.budget));
    return why.empty() ? fmt::format("meets the goals in {:.0f} % of the runs, asked are {:.0f} %", 100 * run.met_share,
                                     100 * request_.certainty)
                       : why;
  }

  /// How far a run is from the goals: 1.2 is 20 % too slow or too dear.
  double excess(double time_s, double usd) const {
    double most = 0;
    if (request_.deadline) most = std::max(most, time_s / request_.deadline->si);
    if (request_.budget) most = std::max(most, usd / dollars(*request_.budget));
    return most;
  }

  void choose() {
    std::vector<std::size_t> meeting;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i)
      if (plan_.runs[i].verdict == Verdict::meets &&
          (request_.objective != Objective::carbon || plan_.runs[i].carbon_known))
        meeting.push_back(i);
    for (const std::size_t i : meeting) {
      if (better(i, plan_.best)) plan_.best = i;
      if (plan_.runs[i].risk_is_known() && better(i, plan_.best_of_known_risk)) plan_.best_of_known_risk = i;
    }
    std::sort(meeting.begin(), meeting.end(), [&](std::size_t a, std::size_t b) {
      const PlannedRun &x = plan_.runs[a], &y = plan_.runs[b];
      return std::tie(x.time_s.median, x.usd_at_worst, a) < std::tie(y.time_s.median, y.usd_at_worst, b);
    });
    double cheapest = -1;
    for (const std::size_t i : meeting) {
      if (cheapest >= 0 && plan_.runs[i].usd_at_worst >= cheapest) continue;
      cheapest = plan_.runs[i].usd_at_worst;
      plan_.pareto.push_back(i);
    }
    std::vector<std::pair<double, std::size_t>> misses;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const PlannedRun& run = plan_.runs[i];
      if (run.verdict == Verdict::misses)
        misses.emplace_back(
            request_.sure ? excess(run.time_s.high, run.usd.high) : excess(run.time_s.median, run.usd.median), i);
      if (run.verdict == Verdict::too_slow || run.verdict == Verdict::too_dear)
        misses.emplace_back(excess(candidate(i).bounds.time_s, candidate(i).bounds.usd), i);
    }
    std::sort(misses.begin(), misses.end());
    // One of each infrastructure: five checkpoint intervals of one machine are one miss.
    std::vector<std::tuple<std::size_t, const Instance*, int, Market>> seen;
    for (const auto& [excess, i] : misses) {
      const PlanCandidate& of = candidate(i);
      const std::tuple place(of.catalog, of.instance, of.nodes, of.market);
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
      seen.push_back(place);
      plan_.near.push_back(i);
      if (plan_.near.size() == kNear) break;
    }
  }

  const Request& request_;
  const PlanOptions& options_;
  Plan plan_;
  EvaluationCaches caches_;
  std::vector<std::size_t> front_;             // that meet the goals, and nothing beats
  std::optional<double> least_of_known_risk_;  // of what is to be minimized
  std::size_t units_ = 0;                      // to simulate, as far as is known before
  std::string invalid_;                        // the first candidate's that is no valid scenario
};

}  // namespace

std::size_t Plan::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const PlannedRun& run) { return run.verdict == verdict; }));
}

Plan make_plan(const Request& request, const PlanOptions& options) { return Search(request, options).run(); }

}  // namespace ganymede
