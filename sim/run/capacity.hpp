#pragma once
// How many nodes of a pool there are to be had: without limit, as recorded, or as drawn by the model of spot capacity.

#include <vector>

#include "sim/run/hazards.hpp"

namespace ganymede::sim {

/// A step function of time. Drawn capacity is drawn when it is asked for and stays: any time may be asked for, in any
/// order, and the same time always gives the same answer as long as the demand is the same.
class Capacity {
 public:
  /// `pool` must outlive this.
  Capacity(const Scenario& scenario, const ScenarioPool& pool);

  /// False: there are always nodes, and at() and next_after() must not be called.
  bool limited() const { return pool_->capacity || !places_.empty(); }

  /// `nodes` are wanted at once. Drawn capacity is that of the most nodes that were ever wanted: a node is not easier
  /// to have because the policy might have wanted more.
  void raise_demand(int nodes);

  /// Nodes that there are at a time.
  double at(Nanoseconds time);

  /// The next time after `time` at which the number may change; kNever if it stays.
  Nanoseconds next_after(Nanoseconds time);

 private:
  /// Something that is up and down in turn: the whole zone, or the place of one node.
  struct State {
    RandomStream random;
    bool up_first;
    int nodes;                         // wanted nodes that are there while this is up
    std::vector<Nanoseconds> changes;  // ascending
    std::size_t passed_at(Nanoseconds time) const;
  };
  void extend(State& state, Nanoseconds time) const;

  struct Row {
    Nanoseconds at;
    double nodes;
  };
  std::vector<Row>::const_iterator first_after(Nanoseconds time) const;

  const ScenarioPool* pool_;
  std::vector<Row> recorded_;  // ascending; before the first row there is no node
  platforms::SpotZone zone_;
  int wanted_ = 0;
  std::vector<State> states_;        // the zone's, then those of places that are up and down by themselves
  std::vector<std::size_t> places_;  // for the n-th node that is wanted, the index of the state that it follows
};

}  // namespace ganymede::sim
