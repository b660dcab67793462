#include "plan/learn.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/errors.hpp"
#include "policies/policy_helpers.hpp"
#include "policies/q_learning.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::plan {
namespace {

/// Decides by the table that is being trained, and updates it with the cost of each decision.
class Learner : public sim::Controller {
 public:
  Learner(const sim::Scenario& scenario, const LearnOptions& options, double explore, policies::PolicyTable& table)
      : sim::Controller(scenario),
        options_(options),
        explore_(explore),
        table_(table),
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
    auto& row = table_.try_emplace(state, std::vector<double>(policies::kQActions, 0)).first->second;
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
    double& value = table_[last_->state][last_->action];
    value += options_.rate * (-cost + best_after - value);
    last_.reset();
  }

  struct Step {
    std::string state;
    std::size_t action;
    double now_s, spent_usd;
  };
  const LearnOptions& options_;
  double explore_;
  policies::PolicyTable& table_;
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

}  // namespace

LearnedTable learn_q_table(const sim::Scenario& scenario, const LearnOptions& options,
                           const std::function<void(std::size_t)>& progress) {
  policies::PolicyTable table;
  sim::StepDistributionCache cache;
  int finished = 0;
  for (int episode = 0; episode < options.episodes; ++episode) {
    sim::Scenario run = sim::with_seed(scenario, options.first_seed + static_cast<std::uint64_t>(episode));
    run.policy.policy = policies::find_policy("q-learning");
    sim::ScenarioSteps times(run, cache);
    const double share = static_cast<double>(episode) / std::max(1, options.episodes - 1);
    Learner learner(run, options, options.explore * (1 - 0.9 * share), table);
    try {
      const sim::RunRecord record = sim::simulate_run(run, times, learner);
      learner.finish(sim::to_seconds(record.end).si, record.nodes_usd);
      ++finished;
    } catch (const Infeasible&) {  // an episode that never finishes teaches nothing
    }
    if (progress) progress(static_cast<std::size_t>(episode) + 1);
  }
  if (finished == 0) throw Infeasible(scenario.file + ": no episode ever finishes; there is nothing to learn from");
  nlohmann::ordered_json out;
  out["schema"] = "ganymede.q-table/1";
  out["scenario"] = scenario.hash_without_seed;
  out["episodes"] = options.episodes;
  out["seeds"] = {options.first_seed, options.first_seed + static_cast<std::uint64_t>(options.episodes) - 1};
  out["values"] = nlohmann::ordered_json::object();
  for (const auto& [state, row] : table) out["values"][state] = row;
  LearnedTable learned;
  learned.held_out_first = options.first_seed + static_cast<std::uint64_t>(options.episodes);
  learned.judged = judge_all(scenario, table, learned.held_out_first, options, cache);
  auto rows = nlohmann::ordered_json::array();
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

}  // namespace ganymede::plan
