#include "sim/run/hazards.hpp"

#include <algorithm>
#include <cmath>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

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

}  // namespace

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

namespace {

platforms::SpotZone zone_as_measured(const Scenario& scenario, const ScenarioPool& pool) {
  const platforms::SpotModel& model = platforms::spot_model();
  const platforms::SpotClass& of = model.of(pool.gpu().family);
  switch (pool.spot) {
    case Spot::calm:
      return of.zone(kTenthQuantile, kTenthQuantile);
    case Spot::harsh:
      return of.zone(-kTenthQuantile, -kTenthQuantile);
    case Spot::past:
    case Spot::drawn: {
      RandomStream random(scenario.seed, "run/spot/" + pool.name);
      return model.draw(pool.past ? model.given(of, *pool.past) : of, random);
    }
    default:
      return of.zone(0, 0);
  }
}

}  // namespace

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
