#pragma once
// How many nodes of a pool can be rented: without limit, as recorded, or as drawn by the model of spot capacity.

#include <optional>
#include <vector>

#include "common/random.hpp"
#include "platforms/platform.hpp"
#include "platforms/spot.hpp"
#include "platforms/spot_shocks.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

// Random times of a run: delays, lifetimes of nodes, and how often nodes are lost. Each use draws from a random stream
// of its own, so that one node more or less does not change the draws of the others.

/// Draws the length of a delay: log-normal around its median, or exactly the median if it has no spread.
Nanoseconds draw(const platforms::Delay& delay, RandomStream& random);

/// Draws the time from a node's grant to its end; kNever beyond 285 years.
Nanoseconds draw(const Lifetimes& lifetimes, RandomStream& random);

/// The zone of a pool of modelled spot capacity: the zone of its preset, or one that the scenario's seed draws, alike
/// to those of earlier pools of its instance type and region.
platforms::SpotZone spot_zone(const Scenario& scenario, const ScenarioPool& pool);

/// Mean losses of one node per second: by crashes, and by the lifetimes, the recording or the modelled capacity of its
/// pool. 0 if it is never lost.
double hazard_rate(const Scenario& scenario, const ScenarioPool& pool);

/// A step function of time. Modelled capacity is drawn on demand and then kept: times may be asked for in any order,
/// and the same time always gives the same answer while the demand stays the same.
class Capacity {
 public:
  /// `pool` must outlive this.
  Capacity(const Scenario& scenario, const ScenarioPool& pool);

  /// False: there are always enough nodes, and at() and next_after() must not be called.
  bool limited() const { return pool_->capacity || !places_.empty(); }

  /// Says that `nodes` nodes are wanted at once. Modelled capacity counts only as many places as were ever wanted at
  /// once, so that a node is not easier to get because the policy might have wanted more.
  void raise_demand(int nodes);

  /// The number of nodes that can be held at `time`.
  double at(Nanoseconds time);

  /// The next time after `time` at which the number may change; kNever if it stays.
  Nanoseconds next_after(Nanoseconds time);

 private:
  /// Something that is alternately up and down: the whole zone, or the place of one node.
  struct State {
    RandomStream random;
    bool up_first;
    int nodes;                         // number of wanted nodes that are available while this is up
    std::vector<Nanoseconds> changes;  // ascending
    std::optional<platforms::FollowingZone> following = {};  // of a zone that follows others: gives the changes
    std::size_t passed_at(Nanoseconds time) const;
  };
  void extend(State& state, Nanoseconds time) const;

  struct Row {
    Nanoseconds at;
    double nodes;
  };
  std::vector<Row>::const_iterator first_after(Nanoseconds time) const;

  const ScenarioPool* pool_;
  std::vector<Row> recorded_;  // ascending; no nodes before the first row
  platforms::SpotZone zone_;
  int wanted_ = 0;
  std::vector<State> states_;        // the zone's, then those of places that change independently of the zone
  std::vector<std::size_t> places_;  // for the n-th node that is wanted, the index of the state that it follows
};

}  // namespace ganymede::sim
