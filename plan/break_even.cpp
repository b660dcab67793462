#include "plan/break_even.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::plan {
namespace {

constexpr double kRoundingOfSets = 1e-9;  // so that a year of exactly n sets does not need n + 1

/// Reserved sets that so many trainings a year need.
double sets_for(const RentedCost& rent, double trainings) {
  return std::max(1.0, std::ceil(trainings * rent.training_h / kHoursPerYear - kRoundingOfSets));
}

/// The least number of trainings a year, up to `capacity`, at which owning costs no more than paying by use.
std::optional<double> meets_use(const OwnedCost& own, const RentedCost& rent, double capacity) {
  const double saved = rent.training_usd - own.training_usd;
  const double fixed = own.fixed_usd_a_year();
  if (fixed <= 0 && saved >= 0) return 0;
  if (saved <= 0 || fixed > saved * capacity) return std::nullopt;
  return fixed / saved;
}

/// The same for reserved machines, whose cost jumps with each further set and is a straight line between.
std::optional<double> meets_commitment(const OwnedCost& own, const RentedCost& rent, double capacity) {
  const double of_a_set = kHoursPerYear / rent.training_h;
  const double saved = rent.training_usd - own.training_usd;
  for (double sets = 1; (sets - 1) * of_a_set < capacity; ++sets) {
    const double first = (sets - 1) * of_a_set, last = std::min(capacity, sets * of_a_set);
    const double short_by = own.fixed_usd_a_year() - sets * rent.committed_usd_a_year - saved * first;
    if (short_by <= 0) return first;
    if (saved > 0 && first + short_by / saved <= last) return first + short_by / saved;
  }
  return std::nullopt;
}

}  // namespace

double usd_a_year(const OwnedCost& own, double trainings) {
  return own.fixed_usd_a_year() + trainings * own.training_usd;
}

double usd_a_year(const RentedCost& rent, double trainings) {
  const double committed = rent.committed_usd_a_year > 0 ? sets_for(rent, trainings) * rent.committed_usd_a_year : 0;
  return committed + trainings * rent.training_usd;
}

std::optional<double> BreakEven::hours_a_year(const OwnedCost& own) const {
  return trainings_a_year ? std::optional(*trainings_a_year * own.training_h) : std::nullopt;
}

std::optional<double> BreakEven::utilization(const OwnedCost& own) const {
  return trainings_a_year ? std::optional(*trainings_a_year * own.training_h / kHoursPerYear) : std::nullopt;
}

BreakEven break_even(const OwnedCost& own, const RentedCost& rent) {
  const double capacity = kHoursPerYear / own.training_h;  // trainings in a year without a pause
  BreakEven found;
  found.trainings_a_year =
      rent.committed_usd_a_year > 0 ? meets_commitment(own, rent, capacity) : meets_use(own, rent, capacity);
  const double running_usd = own.yearly_usd + capacity * own.training_usd;
  const double saved_a_month = (usd_a_year(rent, capacity) - running_usd) / 12;
  if (saved_a_month > 0 && own.capital_usd <= saved_a_month * 12 * own.life_years)
    found.months = own.capital_usd / saved_a_month;
  return found;
}

}  // namespace ganymede::plan
