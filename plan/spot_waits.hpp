#pragma once
// What waiting for spot nodes costs a candidate at least, without a simulation of its runs: when there are enough nodes
// follows from the seed alone.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/front.hpp"
#include "plan/outcome.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// How one seed lets the spot nodes of a run come and go, until the run may have trained for long enough.
struct SpotWait {
  double end_s = 0;        ///< no run ends before
  double node_s = 0;       ///< for how long spot nodes are held until then, summed over them
  double interrupted = 0;  ///< how many of them are taken back until then
  bool ends = false;       ///< false: it does not end until the limit
};

/// The wait of a run that trains only while all of its nodes are there, and then for `training_s` in all. Each time
/// that they are all there again, one of them has just been granted, and the first step is at least `start_s` away. It
/// is looked for until `limit_s`: a run that ends later has at least the wait until then. `pool` is one of limited
/// capacity.
SpotWait wait_for_spot(const sim::Scenario& scenario, const sim::ScenarioPool& pool, double start_s, double training_s,
                       double limit_s);

/// What the runs of a candidate take and cost at least, one for each of its seeds, all of them more than its bounds.
struct WaitingRuns {
  std::vector<Bounds> ending;   ///< of runs that may end before the limit
  std::vector<Bounds> endless;  ///< of the others until then; they may never finish

  /// Bounds of the medians of those that finish.
  Bounds medians() const;
  /// The candidate's run if so many of these miss the goals that it cannot meet them: its verdict and the reason.
  std::optional<PlannedRun> ruled_out(const Request& request) const;
};

/// None if nodes of the candidate do not come and go with the capacity of its zone, or if it may train with some of
/// them. `scenario` is the candidate's; its seed is set. `least` bounds its runs, but with an FID as the goal only the
/// median one. `seeds` are those of the runs, and `images` what each of them trains to get to the FID, if that is the
/// goal.
std::optional<WaitingRuns> waiting_runs(const Request& request, const PlanCandidate& candidate, const Bounds& least,
                                        sim::Scenario& scenario, std::span<const std::uint64_t> seeds,
                                        std::span<const std::int64_t> images);

/// True if these decide what becomes of the candidate: `front` beats them, or they rule it out. Then `out` says so.
bool decided_by_waits(const Request& request, const PlanCandidate& candidate, const Bounds& least, const Front& front,
                      sim::Scenario& scenario, std::span<const std::uint64_t> seeds,
                      std::span<const std::int64_t> images, PlannedRun& out);

}  // namespace ganymede::plan
