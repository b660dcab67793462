#pragma once
// Trains the table of a policy that learns, by simulating runs.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policies/policy.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

struct LearnOptions {
  int episodes = 200;  ///< simulated runs
  /// Seed of the first episode; each further one has the next seed. The table must be judged on other seeds.
  std::uint64_t first_seed = 1'000'000;
  double usd_per_hour_waited = 5;  ///< dollars that an hour of waiting for the result costs
  double rate = 0.2;               ///< learning rate
  double explore = 0.3;            ///< share of random decisions in the first episode; falls linearly to a tenth of it
  /// Tables that are trained apart, each by its share of the episodes, and then averaged. At most `episodes`.
  int learners = 1;
  int jobs = 1;       ///< learners at once
  int held_out = 30;  ///< runs on seeds after those of the episodes, on which the table is judged
};

/// What a policy cost on the held-out seeds: means over the runs that finish.
struct JudgedPolicy {
  std::string policy;
  int finished = 0;  ///< of LearnOptions::held_out runs
  double hours = 0, usd = 0;
  double cost_usd = 0;  ///< what learning minimizes: money for nodes, and hours at what an hour of waiting is worth
};

struct LearnedTable {
  std::string json;                  ///< `ganymede.q-table/1`; its member "judged" holds what follows
  std::uint64_t held_out_first = 0;  ///< the first of the held-out seeds
  std::vector<JudgedPolicy> judged;  ///< q-learning with this table first, then the others by rising cost
};

/// What one of LearnOptions::learners has learned.
struct Lesson {
  int finished = 0;  ///< of its episodes
  policies::PolicyTable values;
  policies::PolicyTable visits;  ///< how often each value was updated
};

/// Trains one table by the episodes that belong to it: those whose number leaves the rest `learner` when divided by
/// LearnOptions::learners. `progress` gets the number of these that are done.
Lesson learn_lesson(const sim::Scenario& scenario, const LearnOptions& options, int learner,
                    const std::function<void(std::size_t)>& progress = {});
std::string lesson_json(const Lesson& lesson);
/// Throws ConfigError if it is not what lesson_json() writes.
Lesson read_lesson(const JsonNode& node);

/// The table of all lessons, by learner: of one, its table; of several, the mean of each value, weighted by how often
/// each learner has updated it (Woo, Joshi & Chi, "The Blessing of Heterogeneity in Federated Q-Learning", ICML 2023).
/// The table is then judged on other seeds, beside every policy with its default settings that needs nothing which the
/// scenario lacks. Throws Infeasible if no episode ever finishes.
LearnedTable table_of(const sim::Scenario& scenario, const LearnOptions& options, const std::vector<Lesson>& lessons);

/// Returns a table for the policy `q-learning`, trained by tabular Q-learning (Watkins & Dayan, 1992) on simulated runs
/// of the scenario. The cost of a decision is the money spent and the time waited until the next decision. The same
/// scenario and options give the same bytes, whatever LearnOptions::jobs. `progress` gets the number of episodes done.
LearnedTable learn_q_table(const sim::Scenario& scenario, const LearnOptions& options,
                           const std::function<void(std::size_t)>& progress = {});

}  // namespace ganymede::plan
