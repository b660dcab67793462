#include "sim/run/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/units.hpp"
#include "platforms/providers.hpp"

namespace ganymede::sim {
namespace {

/// Largest number of places that are drawn; further nodes follow the states of these places in turn.
constexpr int kMaxPlaces = 256;
/// Rows of a recording from this time on, in seconds, are left out: no event of a run is as late.
constexpr double kMaxRow_s = 9e9;

// The bathtub distribution of lifetimes (Lifetimes::Kind::bathtub) as fitted by Kadupitiya et al., HPDC 2020.
constexpr double kBathtubA = 0.475;
constexpr double kBathtubEarly_s = 3600;
constexpr double kBathtubLate_s = 0.8 * 3600;

/// A tenth of the standard normal distribution lies above this value.
constexpr double kTenthQuantile = 1.2815515655446004;

/// Probability that a node lives at most `t` seconds, if none lives longer than `most`.
double bathtub(double t, double most) {
  return kBathtubA * (1 - portable_exp(-t / kBathtubEarly_s) + portable_exp((t - most) / kBathtubLate_s));
}

/// Mean lifetime in seconds: the integral of 1 - F by the midpoint rule.
double bathtub_mean(double most) {
  constexpr int kParts = 1000;
  double sum = 0;
  for (int i = 0; i < kParts; ++i) sum += std::max(0.0, 1 - bathtub((i + 0.5) * most / kParts, most)) * most / kParts;
  return sum;
}

/// True if the model makes the capacity of the pools' zones come and go together. Recordings show that of one region
/// and instance type; different GPUs showed none of it.
bool follow_each_other(const ScenarioPool& a, const ScenarioPool& b) {
  return is_modelled(a.spot) && is_modelled(b.spot) && a.catalog == b.catalog && a.pool.region == b.pool.region &&
         a.pool.instance == b.pool.instance && platforms::provider_of(a.platform->provider).bids.empty();
}

/// Two standard normal variables that draw the zone of a pool. Zones that follow each other are equally correlated:
/// each is drawn given those before it, so that the first is drawn as if it were alone.
std::array<double, 2> normals_of(const Scenario& scenario, const ScenarioPool& pool) {
  const double alike = platforms::spot_model().alike;
  std::array<double, 2> sums{}, last{};
  int before = 0;
  for (const ScenarioPool& one : scenario.pools) {
    const bool own = one.name == pool.name;
    if (!own && (one.spot != Spot::drawn || pool.spot != Spot::drawn || !follow_each_other(one, pool))) continue;
    const double weight = alike / (1 + (before - 1) * alike), spread = std::sqrt(1 - before * alike * weight);
    RandomStream random(scenario.seed, "run/spot/" + one.name);
    for (std::size_t i : {0U, 1U}) sums[i] += last[i] = weight * sums[i] + spread * random.normal();
    ++before;
    if (own) break;
  }
  return last;
}

platforms::SpotZone zone_as_measured(const Scenario& scenario, const ScenarioPool& pool) {
  const platforms::SpotModel& model = platforms::spot_model();
  const platforms::SpotClass& of = model.of(pool.gpu().family);
  switch (pool.spot) {
    case Spot::calm:
      return of.zone(kTenthQuantile, kTenthQuantile);
    case Spot::harsh:
      return of.zone(-kTenthQuantile, -kTenthQuantile);
    case Spot::past:
    case Spot::drawn:
      return model.draw(pool.past ? model.given(of, *pool.past) : of, normals_of(scenario, pool));
    default:
      return of.zone(0, 0);
  }
}

}  // namespace

Capacity::Capacity(const Scenario& scenario, const ScenarioPool& pool) : pool_(&pool) {
  if (pool.capacity)
    for (const Series::Row& row : pool.capacity->rows)
      if (row.at.si < kMaxRow_s) recorded_.push_back({to_nanoseconds(row.at), row.value});
  if (!is_modelled(pool.spot)) return;
  zone_ = spot_zone(scenario, pool);
  const auto stream = [&](std::string_view of, int place) {
    return RandomStream(scenario.seed, fmt::format("run/spot/{}/{}", of, place));
  };
  // Each place of the pool follows the same place of the other zones' pools, so that places of one pool depend on each
  // other no more than in a pool alone.
  const std::string zones = fmt::format("{}/{}/{}", pool.catalog, pool.pool.region, pool.pool.instance);
  const bool follows_others = std::any_of(scenario.pools.begin(), scenario.pools.end(), [&](const ScenarioPool& other) {
    return other.name != pool.name && follow_each_other(other, pool);
  });
  const auto add_state = [&](const RandomStream& own, const RandomStream& shared) {
    states_.push_back({own, true, 0, {}});
    if (follows_others) states_.back().following.emplace(zone_, shared, own);
  };
  add_state(stream(pool.name, -1), stream(zones, -1));
  for (int place = 0; place < std::min(pool.max_nodes, kMaxPlaces); ++place) {
    RandomStream own = stream(pool.name, place), shared = stream(zones, place);
    // Machines of hosts that take bids are not a zone: each is lost by itself.
    const bool with_zone = (follows_others ? shared : own).uniform() < platforms::spot_model().together &&
                           platforms::provider_of(pool.platform->provider).bids.empty();
    places_.push_back(with_zone ? 0 : states_.size());
    if (!with_zone) add_state(own, shared);
  }
  for (State& state : states_) {
    if (state.following) {
      state.up_first = state.following->up_first();
      state.changes.push_back(to_nanoseconds(state.following->next()));
      continue;
    }
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
    if (state.following) {
      state.changes.push_back(to_nanoseconds(state.following->next()));
      continue;
    }
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

Nanoseconds draw(const platforms::Delay& delay, RandomStream& random) {
  if (delay.spread == 0) return to_nanoseconds(delay.median);
  return to_nanoseconds(delay.median * portable_exp(delay.spread * random.normal()));
}

Nanoseconds draw(const Lifetimes& lifetimes, RandomStream& random) {
  if (lifetimes.kind == Lifetimes::Kind::exponential) {
    const double life = lifetimes.mean.si * random.exponential();
    return life < 9e9 ? to_nanoseconds(Seconds{life}) : kNever;
  }
  const double u = random.uniform();
  double low = 0, high = lifetimes.longest.si;
  if (u >= bathtub(high, high)) return to_nanoseconds(lifetimes.longest);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (bathtub(middle, lifetimes.longest.si) < u ? low : high) = middle;
  }
  return to_nanoseconds(Seconds{high});
}

platforms::SpotZone spot_zone(const Scenario& scenario, const ScenarioPool& pool) {
  platforms::SpotZone zone = zone_as_measured(scenario, pool);
  zone.mean_up = Seconds{zone.mean_up.si * pool.kept_factor};
  return zone;
}

double hazard_rate(const Scenario& scenario, const ScenarioPool& pool) {
  double rate = scenario.faults.crash ? 1 / scenario.faults.crash->si : 0;
  if (pool.lifetimes)
    rate += 1 / (pool.lifetimes->kind == Lifetimes::Kind::exponential ? pool.lifetimes->mean.si
                                                                      : bathtub_mean(pool.lifetimes->longest.si));
  if (is_modelled(pool.spot)) rate += 1 / spot_zone(scenario, pool).mean_up.si;
  if (pool.capacity && pool.capacity->rows.size() > 1) {
    const auto& rows = pool.capacity->rows;
    double taken = 0, node_seconds = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      taken += std::max(0.0, rows[i - 1].value - rows[i].value);
      node_seconds += rows[i - 1].value * (rows[i].at - rows[i - 1].at).si;
    }
    if (node_seconds > 0) rate += taken / node_seconds;
  }
  return rate;
}

}  // namespace ganymede::sim
