#pragma once
// The search of a plan: which candidates may be worth a simulation, and what follows from what became of them. Whoever
// drives it decides which process evaluates what (planner.cpp, studies/study_shards.hpp).

#include <optional>
#include <string>
#include <vector>

#include "plan/evaluate.hpp"
#include "plan/front.hpp"
#include "plan/planner.hpp"

namespace ganymede::plan {

/// A search in units: candidates of a group that one process evaluates, because they share their steps. Units are in
/// rounds of kUnitsPerRound, the most promising first. Before a unit is evaluated, the outcomes of earlier rounds
/// should be taken, and of no others: what a unit leaves out because it is beaten then does not depend on how many
/// processes there are. Knowing less, a unit leaves out less.
class Search {
 public:
  /// Fixed, because the result must not depend on the number of jobs.
  static constexpr std::size_t kUnitsPerRound = 16;

  /// `request` must outlive the search.
  Search(const Request& request, PlanOptions options);

  std::size_t size() const { return units_.size(); }
  /// The unit in one line, as long as nothing was taken: "aws us-east-1, 2 x p3.8xlarge, ..., and 3 more like it".
  std::string label(std::size_t unit) const;
  std::size_t member_count(std::size_t unit) const { return units_[unit].members.size(); }
  /// True if what was taken beats all candidates of the unit, so that there is nothing to evaluate.
  bool is_beaten(std::size_t unit) const;
  /// Simulates the unit's candidates, apart from those that are beaten.
  UnitOutcome evaluate(std::size_t unit);
  /// Takes in what evaluate() has given for a unit, in this process or in another one. At most once for each unit.
  void take(std::size_t unit, const UnitOutcome& outcome);
  /// The best candidate of what was taken; none if nothing meets the goals.
  std::optional<std::size_t> best() const { return best_; }
  const PlanCandidate& candidate(std::size_t i) const { return plan_.candidates.all[i]; }
  const PlannedRun& run(std::size_t i) const { return plan_.runs[i]; }
  /// The plan of what was taken. Throws ConfigError if no candidate has a valid scenario.
  Plan plan();

 private:
  /// Candidates of a group that are not ruled out: either those whose nodes may be taken back, or the others.
  struct Unit {
    bool late = false;  ///< at risk and not known: the others' bounds are near what they take, and few runs tell it
    double least = 0;   ///< the lowest bound of the objective among them
    std::size_t group = 0;
    std::vector<std::size_t> members;
    bool taken = false;
    auto operator<=>(const Unit&) const = default;
  };

  void rule_out_candidates();
  void make_units();
  /// Lets candidate `i`, which meets the goals, beat others.
  void take_in(std::size_t i);
  bool is_open(std::size_t i) const { return plan_.runs[i].verdict == Verdict::beaten && !left_out_[i]; }

  const Request& request_;
  PlanOptions options_;
  Plan plan_;  // each candidate has the verdict `beaten` until it gets another one
  CandidateScenarios scenarios_;
  std::vector<bool> left_out_;  // candidates for which another one stands
  std::vector<Unit> units_;
  std::optional<std::size_t> best_;
  Front front_;          // of what was taken
  std::string invalid_;  // why the first invalid scenario is invalid
};

}  // namespace ganymede::plan
