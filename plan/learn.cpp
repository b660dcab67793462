#include "plan/learn.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "policies/policy_helpers.hpp"
#include "policies/q_learning.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::plan {
namespace {

/// Decides by the table that is being trained, and updates it with the cost of each decision.
class Learner : public sim::Controller {
 public:
  Learner(const sim::Scenario& scenario, const LearnOptions& options, double explore, Lesson& lesson)
      : sim::Controller(scenario),
        options_(options),
        explore_(explore),
        lesson_(lesson),
        random_(scenario.seed, "plan/learn") {}

  /// Updates the table with the cost of the last decision; call it when the run is over.
  void finish(double now_s, double spent_usd) { learn(now_s, spent_usd, 0); }

 private:
  policies::Decision ask(const policies::Observation& seen) override {
    policies::Decision decision{.nodes = policies::requested_nodes(seen)};
    const policies::PoolView& first = seen.pools[0];
    const bool unsettled = !seen.training || first.starting + first.waiting > 0;
    if (unsettled) {
      if (first.held() + first.waiting > 0) decision.nodes[0] = first.held() + first.waiting;
      return decision;
    }
    const std::string state = policies::q_state(seen);
    auto& row = lesson_.values.try_emplace(state, std::vector<double>(policies::kQActions, 0)).first->second;
    const double best = *std::max_element(row.begin(), row.end());
    learn(seen.now.si, seen.spent_usd, best);
    std::size_t action = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    if (random_.uniform() < explore_) action = random_.below(policies::kQActions);
    last_ = {state, action, seen.now.si, seen.spent_usd};
    decision.nodes[0] = policies::q_nodes(seen, action);
    return decision;
  }

  void learn(double now_s, double spent_usd, double best_after) {
    if (!last_) return;
    const double cost = (now_s - last_->now_s) / 3600 * options_.usd_per_hour_waited + spent_usd - last_->spent_usd;
    double& value = lesson_.values[last_->state][last_->action];
    value += options_.rate * (-cost + best_after - value);
    auto& visits = lesson_.visits.try_emplace(last_->state, std::vector<double>(policies::kQActions, 0)).first->second;
    ++visits[last_->action];
    last_.reset();
  }

  struct Step {
    std::string state;
    std::size_t action;
    double now_s, spent_usd;
  };
  const LearnOptions& options_;
  double explore_;
  Lesson& lesson_;
  RandomStream random_;
  std::optional<Step> last_;
};

/// True if the policy can decide in the scenario as it was read, and would do so otherwise than by default.
bool can_judge(const policies::Policy& policy, const sim::Scenario& scenario) {
  if (!policy.decide || policy.learns || policy.other_market || policy.other_regions) return false;
  if (policy.spot_only && scenario.pools.front().pool.market != platforms::Market::spot) return false;
  return (!policy.needs_deadline || scenario.deadline) && (!policy.needs_budget || scenario.budget);
}

JudgedPolicy judge(const sim::Scenario& scenario, const sim::PolicyChoice& choice, std::uint64_t first,
                   const LearnOptions& options, sim::StepDistributionCache& cache) {
  JudgedPolicy judged{.policy = std::string(choice.policy->name)};
  for (int i = 0; i < options.held_out; ++i) {
    sim::Scenario run = sim::with_seed(scenario, first + static_cast<std::uint64_t>(i));
    run.policy = choice;
    sim::ScenarioSteps times(run, cache);
    try {
      const sim::RunRecord record = sim::simulate_run(run, times);
      judged.hours += sim::to_seconds(record.end).si / 3600;
      judged.usd += record.nodes_usd;
      ++judged.finished;
    } catch (const Infeasible&) {  // counted by what is missing in `finished`
    }
  }
  const double runs = std::max(1, judged.finished);
  judged.hours /= runs;
  judged.usd /= runs;
  judged.cost_usd = judged.usd + judged.hours * options.usd_per_hour_waited;
  return judged;
}

/// Judges the table and the policies that it competes with.
std::vector<JudgedPolicy> judge_all(const sim::Scenario& scenario, const policies::PolicyTable& table,
                                    std::uint64_t first, const LearnOptions& options,
                                    sim::StepDistributionCache& cache) {
  sim::PolicyChoice choice;
  choice.every = scenario.policy.every;
  const auto with = [&](const policies::Policy& policy) {
    choice.policy = &policy;
    choice.settings.clear();
    for (const policies::PolicySetting& setting : policy.settings) choice.settings.push_back(setting.default_value);
    return judge(scenario, choice, first, options, cache);
  };
  choice.table = std::make_shared<const policies::PolicyTable>(table);
  std::vector<JudgedPolicy> all = {with(*policies::find_policy("q-learning"))};
  choice.table.reset();
  for (const policies::Policy& policy : policies::policies())
    if (can_judge(policy, scenario)) all.push_back(with(policy));
  // A policy whose runs do not all finish is no rival, however cheap the others are.
  std::stable_sort(all.begin() + 1, all.end(), [](const JudgedPolicy& one, const JudgedPolicy& other) {
    return std::pair(-one.finished, one.cost_usd) < std::pair(-other.finished, other.cost_usd);
  });
  return all;
}

/// The mean of what learners have found, each value by how often each has updated it.
policies::PolicyTable mean_of(const std::vector<Lesson>& lessons) {
  policies::PolicyTable mean, visits;
  for (const Lesson& lesson : lessons)
    for (const auto& [state, values] : lesson.values) {
      auto& sums = mean.try_emplace(state, std::vector<double>(policies::kQActions, 0)).first->second;
      auto& counts = visits.try_emplace(state, std::vector<double>(policies::kQActions, 0)).first->second;
      const auto of = lesson.visits.find(state);
      for (std::size_t action = 0; of != lesson.visits.end() && action < policies::kQActions; ++action) {
        sums[action] += of->second[action] * values[action];
        counts[action] += of->second[action];
      }
    }
  for (auto& [state, values] : mean)
    for (std::size_t action = 0; action < policies::kQActions; ++action)
      if (visits[state][action] > 0) values[action] /= visits[state][action];
  return mean;
}

policies::PolicyTable read_rows(const JsonNode& node) {
  policies::PolicyTable table;
  for (const auto& [state, row] : node.as_map()) {
    std::vector<double> values = row.as_numbers(-1e300, 1e300);
    if (values.size() != policies::kQActions) row.expected("a number for each action");
    table.emplace(state, std::move(values));
  }
  return table;
}

}  // namespace

Lesson learn_lesson(const sim::Scenario& scenario, const LearnOptions& options, int learner,
                    const std::function<void(std::size_t)>& progress) {
  Lesson lesson;
  sim::StepDistributionCache cache;
  for (int episode = learner, done = 1; episode < options.episodes; episode += options.learners, ++done) {
    sim::Scenario run = sim::with_seed(scenario, options.first_seed + static_cast<std::uint64_t>(episode));
    run.policy.policy = policies::find_policy("q-learning");
    sim::ScenarioSteps times(run, cache);
    const double share = static_cast<double>(episode) / std::max(1, options.episodes - 1);
    Learner player(run, options, options.explore * (1 - 0.9 * share), lesson);
    try {
      const sim::RunRecord record = sim::simulate_run(run, times, player);
      player.finish(sim::to_seconds(record.end).si, record.nodes_usd);
      ++lesson.finished;
    } catch (const Infeasible&) {  // an episode that never finishes teaches nothing
    }
    if (progress) progress(static_cast<std::size_t>(done));
  }
  return lesson;
}

std::string lesson_json(const Lesson& lesson) {
  const Json out = {{"finished", lesson.finished}, {"values", lesson.values}, {"visits", lesson.visits}};
  return out.dump();
}

Lesson read_lesson(const JsonNode& node) {
  JsonObject in(node);
  Lesson lesson;
  lesson.finished = static_cast<int>(in.required("finished").as_integer(0, std::numeric_limits<int>::max()));
  lesson.values = read_rows(in.required("values"));
  lesson.visits = read_rows(in.required("visits"));
  in.finish();
  return lesson;
}

LearnedTable table_of(const sim::Scenario& scenario, const LearnOptions& options, const std::vector<Lesson>& lessons) {
  if (std::all_of(lessons.begin(), lessons.end(), [](const Lesson& lesson) { return lesson.finished == 0; }))
    throw Infeasible(scenario.file + ": no episode ever finishes; there is nothing to learn from");
  const policies::PolicyTable table = lessons.size() == 1 ? lessons.front().values : mean_of(lessons);
  sim::StepDistributionCache cache;
  OrderedJson out;
  out["schema"] = "ganymede.q-table/1";
  out["scenario"] = scenario.hash_without_seed;
  out["episodes"] = options.episodes;
  if (options.learners > 1) out["learners"] = options.learners;
  out["seeds"] = {options.first_seed, options.first_seed + static_cast<std::uint64_t>(options.episodes) - 1};
  out["values"] = OrderedJson::object();
  for (const auto& [state, row] : table) out["values"][state] = row;
  LearnedTable learned;
  learned.held_out_first = options.first_seed + static_cast<std::uint64_t>(options.episodes);
  learned.judged = judge_all(scenario, table, learned.held_out_first, options, cache);
  auto rows = OrderedJson::array();
  for (const JudgedPolicy& one : learned.judged)
    rows.push_back({{"policy", one.policy},
                    {"finished", one.finished},
                    {"hours", one.hours},
                    {"usd", one.usd},
                    {"cost_usd", one.cost_usd}});
  const std::uint64_t last = learned.held_out_first + static_cast<std::uint64_t>(options.held_out) - 1;
  out["judged"] = {{"seeds", {learned.held_out_first, last}},
                   {"usd_per_hour_waited", options.usd_per_hour_waited},
                   {"policies", std::move(rows)}};
  learned.json = out.dump(2) + "\n";
  return learned;
}

LearnedTable learn_q_table(const sim::Scenario& scenario, const LearnOptions& options,
                           const std::function<void(std::size_t)>& progress) {
  if (options.learners == 1) return table_of(scenario, options, {learn_lesson(scenario, options, 0, progress)});
  const auto learners = static_cast<std::size_t>(options.learners);
  const auto outcomes = run_children(
      learners, options.jobs,
      [&](std::size_t learner) { return lesson_json(learn_lesson(scenario, options, static_cast<int>(learner))); },
      [&](std::size_t done) {
        if (progress) progress(static_cast<std::size_t>(options.episodes) * done / learners);
      });
  std::vector<Lesson> lessons;
  for (const ChildOutcome& outcome : outcomes) {
    rethrow(outcome);
    lessons.push_back(read_lesson(JsonNode::parse(outcome.text, "a lesson")));
  }
  return table_of(scenario, options, lessons);
}

}  // namespace ganymede::plan
