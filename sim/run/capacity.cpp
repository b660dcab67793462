#include "sim/run/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"
#include "platforms/providers.hpp"

namespace ganymede::sim {
namespace {

/// Largest number of places that are drawn; further nodes follow the states of these places in turn.
constexpr int kMaxPlaces = 256;
/// Rows of a recording from this time on, in seconds, are left out: no event of a run is as late.
constexpr double kMaxRow_s = 9e9;

}  // namespace

Capacity::Capacity(const Scenario& scenario, const ScenarioPool& pool) : pool_(&pool) {
  if (pool.capacity)
    for (const Series::Row& row : pool.capacity->rows)
      if (row.at.si < kMaxRow_s) recorded_.push_back({to_nanoseconds(row.at), row.value});
  if (!is_modelled(pool.spot)) return;
  zone_ = spot_zone(scenario, pool);
  const auto stream = [&](int place) {
    return RandomStream(scenario.seed, fmt::format("run/spot/{}/{}", pool.name, place));
  };
  states_.push_back({stream(-1), true, 0, {}});
  for (int place = 0; place < std::min(pool.max_nodes, kMaxPlaces); ++place) {
    State own{stream(place), true, 0, {}};
    // Machines of hosts that take bids are not a zone: each is lost by itself.
    const bool follows = own.random.uniform() < platforms::spot_model().together &&
                         platforms::provider_of(pool.platform->provider).bids.empty();
    places_.push_back(follows ? 0 : states_.size());
    if (!follows) states_.push_back(std::move(own));
  }
  for (State& state : states_) {
    state.up_first = state.random.uniform() < zone_.availability();
    const Seconds mean = state.up_first ? zone_.mean_up : zone_.mean_down;
    const double spread = state.up_first ? platforms::spot_model().up_spread : platforms::spot_model().down_spread;
    state.changes.push_back(to_nanoseconds(platforms::draw_rest(mean, spread, state.random)));
  }
}

/// The number of changes up to `time`. It is counted from the end, because nearly all calls ask about the latest known
/// changes.
std::size_t Capacity::State::passed_at(Nanoseconds time) const {
  std::size_t passed = changes.size();
  while (passed > 0 && changes[passed - 1] > time) --passed;
  return passed;
}

/// Draws changes until one after `time` is known.
void Capacity::extend(State& state, Nanoseconds time) const {
  while (state.changes.back() <= time) {
    const bool up = (state.changes.size() % 2 == 0) == state.up_first;
    const Seconds length =
        up ? platforms::draw_duration(zone_.mean_up, platforms::spot_model().up_spread, state.random)
           : platforms::draw_duration(zone_.mean_down, platforms::spot_model().down_spread, state.random);
    state.changes.push_back(state.changes.back() + to_nanoseconds(length));
  }
}

std::vector<Capacity::Row>::const_iterator Capacity::first_after(Nanoseconds time) const {
  return std::upper_bound(recorded_.begin(), recorded_.end(), time,
                          [](Nanoseconds when, const Row& row) { return when < row.at; });
}

void Capacity::raise_demand(int nodes) {
  if (nodes <= wanted_ || places_.empty()) return;
  for (; wanted_ < nodes; ++wanted_) ++states_[places_[static_cast<std::size_t>(wanted_) % places_.size()]].nodes;
}

double Capacity::at(Nanoseconds time) {
  if (pool_->capacity) {
    const auto next = first_after(time);
    return next == recorded_.begin() ? 0 : std::prev(next)->nodes;
  }
  int nodes = 0;
  for (State& state : states_) {
    if (state.nodes == 0) continue;
    extend(state, time);
    if ((state.passed_at(time) % 2 == 0) == state.up_first) nodes += state.nodes;
  }
  return nodes;
}

Nanoseconds Capacity::next_after(Nanoseconds time) {
  if (pool_->capacity) {
    const auto next = first_after(time);
    return next == recorded_.end() ? kNever : next->at;
  }
  Nanoseconds first = kNever;
  for (State& state : states_) {
    extend(state, time);
    first = std::min(first, state.changes[state.passed_at(time)]);
  }
  return first;
}

}  // namespace ganymede::sim
