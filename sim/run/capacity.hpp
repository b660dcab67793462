#pragma once
// How many nodes of a pool are to be had: without limit, as recorded, or as drawn by the model of spot capacity.

#include <vector>

#include "sim/run/hazards.hpp"

namespace ganymede {

/// A step function of time that may be asked about any time, in any order: what is to come is drawn when it is asked
/// for, and stays.
class Capacity {
 public:
  /// Both must outlive it.
  Capacity(const Scenario& scenario, const ScenarioPool& pool);

  bool limited() const { return pool_->capacity || !places_.empty(); }
  /// So many nodes are wanted at once. Drawn capacity is counted over the most that was ever wanted: that a policy
  /// might have wanted more does not make a node easier to have.
  void raise_demand(int nodes);
  double at(Nanoseconds time);
  /// When it may change next; kNever: it does not.
  Nanoseconds next_after(Nanoseconds time);

 private:
  /// Up and down in turn.
  struct State {
    RandomStream random;
    bool up_first;
    int nodes;                         // wanted, that follow it
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
  std::vector<Row> recorded_;  // in order; nothing is to be had before the first
  SpotZone zone_;
  int wanted_ = 0;
  std::vector<State> states_;        // the zone's, then those of nodes that have their own
  std::vector<std::size_t> places_;  // of each node the state that it follows
};

}  // namespace ganymede
