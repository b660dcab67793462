#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/process.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

/// Groups simulated between two looks at what is beaten by now. Fixed: the result must not depend on the machine.
constexpr std::size_t kGroupsARound = 16;
constexpr std::size_t kNear = 5;

double dollars(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

/// Over the seeds: the median, and the 5th percentile of the low ends to the 95th of the high ones.
Json measure(const std::vector<Result>& runs, auto&& value, auto&& low, auto&& high) {
  std::vector<double> values, lows, highs;
  for (const Result& run : runs) {
    values.push_back(value(run));
    lows.push_back(low(run));
    highs.push_back(high(run));
  }
  for (auto* ends : {&values, &lows, &highs}) std::sort(ends->begin(), ends->end());
  return {quantile(values, 0.5), quantile(lows, 0.05), quantile(highs, 0.95)};
}

PlanMeasure read_measure(const Json& in) { return {in[0].get<double>(), in[1].get<double>(), in[2].get<double>()}; }

/// All seeds of a candidate, as the text that a child sends back.
Json simulate_candidate(const Request& request, const Candidate& candidate) {
  Json out;
  try {
    Scenario scenario = read_scenario(JsonNode::wrap(scenario_of(request, candidate), request.file, ""));
    std::vector<Result> runs;
    for (int i = 0; i < request.seeds; ++i) {
      set_seed(scenario, request.seed + static_cast<std::uint64_t>(i));
      runs.push_back(simulate(scenario));
    }
    double busy = 0, losses = 0, met = 0;
    const auto count = static_cast<double>(runs.size());
    bool carbon = true;
    for (const Result& run : runs) {
      busy += run.gpu_busy / count;
      losses += static_cast<double>(run.losses) / count;
      const double time_s = request.sure ? run.interval_s.high : run.total.si;
      const double usd = request.sure ? run.cost_usd.high : dollars(run.bill.total());
      const bool in_time = !request.deadline || time_s <= request.deadline->si;
      met += (in_time && (!request.budget || usd <= dollars(*request.budget)) ? 1 : 0) / count;
      carbon = carbon && run.energy.has_value();
    }
    out["time"] = measure(
        runs, [](const Result& r) { return r.total.si; }, [](const Result& r) { return r.interval_s.low; },
        [](const Result& r) { return r.interval_s.high; });
    out["usd"] = measure(
        runs, [](const Result& r) { return dollars(r.bill.total()); }, [](const Result& r) { return r.cost_usd.low; },
        [](const Result& r) { return r.cost_usd.high; });
    out["kg"] = measure(
        runs, [](const Result& r) { return r.energy ? r.energy->kg_co2e : 0; },
        [](const Result& r) { return r.kg_co2e.low; }, [](const Result& r) { return r.kg_co2e.high; });
    out["carbon_known"] = carbon;
    out["busy"] = busy;
    out["losses"] = losses;
    out["met"] = met;
    out["inputs"] = runs.front().inputs;
    out["warnings"] = runs.front().warnings;
  } catch (const ConfigError& error) {  // such as a storage that this catalog does not have
    out["invalid"] = error.what();
  } catch (const Infeasible& error) {
    out["impossible"] = error.what();
  } catch (const Failure& error) {
    out["impossible"] = error.what();
  }
  return out;
}

class Search {
 public:
  Search(const Request& request, const PlanOptions& options) : request_(request), options_(options) {
    plan_.candidates = enumerate(request);
    plan_.runs.resize(plan_.candidates.all.size());
  }

  Plan run() {
    bound();
    std::vector<std::size_t> order = by_bound();
    groups_ = order.size();
    std::size_t done = 0;
    for (std::size_t first = 0; first < order.size(); first += kGroupsARound) {
      const std::size_t end = std::min(order.size(), first + kGroupsARound);
      round({order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(end)},
            done);
      done = end;
    }
    // Wrong for all is wrong in the request.
    if (plan_.simulated == 0 && !invalid_.empty()) throw ConfigError(invalid_);
    choose();
    return std::move(plan_);
  }

 private:
  const Candidate& candidate(std::size_t i) const { return plan_.candidates.all[i]; }

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
    return request_.objective == Objective::time ? bounds.time_s : bounds.usd;
  }
  double value(const PlannedRun& run) const {
    return request_.objective == Objective::time     ? run.time_s.median
           : request_.objective == Objective::carbon ? run.kg_co2e.median
                                                     : run.usd.median;
  }

  /// Groups that hold something to simulate, the most promising first.
  std::vector<std::size_t> by_bound() const {
    const auto& groups = plan_.candidates.groups;
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      double least = -1;
      for (const std::size_t i : groups[g].members)
        if (open(i) && (least < 0 || value(candidate(i).bounds) < least)) least = value(candidate(i).bounds);
      if (least >= 0) order.emplace_back(least, g);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::size_t> indices;
    for (const auto& [least, g] : order) indices.push_back(g);
    return indices;
  }

  bool open(std::size_t i) const { return plan_.runs[i].verdict == Verdict::beaten; }

  /// Strictly faster and strictly cheaper than the bounds: so than any run of the candidate.
  const PlannedRun* beaten_by(std::size_t i) const {
    if (options_.exhaustive || request_.objective == Objective::carbon) return nullptr;
    const Bounds& bounds = candidate(i).bounds;
    for (const std::size_t other : front_)
      if (plan_.runs[other].time_s.median < bounds.time_s && plan_.runs[other].usd.median < bounds.usd)
        return &plan_.runs[other];
    return nullptr;
  }

  void round(const std::vector<std::size_t>& groups, std::size_t done) {
    std::vector<std::vector<std::size_t>> work;
    for (const std::size_t g : groups) {
      auto& members = work.emplace_back();
      for (const std::size_t i : plan_.candidates.groups[g].members) {
        if (!open(i)) continue;
        if (const PlannedRun* better = beaten_by(i))
          plan_.runs[i].reason = fmt::format("needs at least {} and {:.2f} USD, where another takes {} and {:.2f} USD",
                                             to_string(Seconds{candidate(i).bounds.time_s}), candidate(i).bounds.usd,
                                             to_string(Seconds{better->time_s.median}), better->usd.median);
        else
          members.push_back(i);
      }
    }
    // A group in one child: its members share their steps.
    const auto outcomes = run_children(
        work.size(), options_.jobs,
        [&](std::size_t g) {
          Json answers = Json::array();
          for (const std::size_t i : work[g]) answers.push_back(simulate_candidate(request_, candidate(i)));
          return answers.dump();
        },
        [&](std::size_t finished) {
          if (options_.progress) options_.progress(done + finished, groups_);
        },
        ChildUse::reused);
    for (std::size_t g = 0; g < work.size(); ++g) {
      rethrow(outcomes[g]);
      const Json answers = Json::parse(outcomes[g].text);
      for (std::size_t k = 0; k < work[g].size(); ++k) land(work[g][k], answers[k]);
    }
  }

  void land(std::size_t i, const Json& answer) {
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
    run.carbon_known = answer["carbon_known"];
    run.gpu_busy = answer["busy"];
    run.losses = answer["losses"];
    run.met_share = answer["met"];
    run.inputs = answer["inputs"];
    run.warnings = answer["warnings"].get<std::vector<std::string>>();
    const bool meets = run.met_share >= request_.certainty - 1e-12;
    run.verdict = meets ? Verdict::meets : Verdict::misses;
    if (!meets) run.reason = miss(run);
    if (meets) front_.push_back(i);
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
    for (const std::size_t i : meeting)
      if (!plan_.best || value(plan_.runs[i]) < value(plan_.runs[*plan_.best])) plan_.best = i;
    std::sort(meeting.begin(), meeting.end(), [&](std::size_t a, std::size_t b) {
      const PlannedRun &x = plan_.runs[a], &y = plan_.runs[b];
      return std::tie(x.time_s.median, x.usd.median, a) < std::tie(y.time_s.median, y.usd.median, b);
    });
    double cheapest = -1;
    for (const std::size_t i : meeting) {
      if (cheapest >= 0 && plan_.runs[i].usd.median >= cheapest) continue;
      cheapest = plan_.runs[i].usd.median;
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
      const Candidate& of = candidate(i);
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
  std::vector<std::size_t> front_;  // that meet the goals
  std::size_t groups_ = 0;          // to simulate, as far as is known before
  std::string invalid_;             // the first candidate's that is no valid scenario
};

}  // namespace

std::size_t Plan::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [&](const PlannedRun& run) { return run.verdict == verdict; }));
}

Plan make_plan(const Request& request, const PlanOptions& options) { return Search(request, options).run(); }

}  // namespace ganymede
