#pragma once
// From how much use on a machine of one's own costs less than a rented one. How much it is used is the result here: the
// cost of owning is split into what is due whatever happens and what each training adds.

#include <optional>

namespace ganymede::plan {

/// Hours of a year, 365.25 days; platforms/billing.hpp writes machines off over the same.
inline constexpr double kHoursPerYear = 8766;

/// What owned machines cost in dollars. A training is the one that a request asks for.
struct OwnedCost {
  double capital_usd = 0;   ///< their price, paid once
  double life_years = 1;    ///< years over which it is written off
  double yearly_usd = 0;    ///< a year's space, people and electricity of idle machines, whether they train or not
  double training_usd = 0;  ///< what one training adds: its electricity and the hours of operators
  double training_h = 0;    ///< how long one training takes on them, above 0

  /// What is due in a year without a training.
  double fixed_usd_a_year() const { return capital_usd / life_years + yearly_usd; }
};

/// What rented machines cost in dollars.
struct RentedCost {
  double training_usd = 0;          ///< for each training, reserved hours left out
  double committed_usd_a_year = 0;  ///< for one reserved set, used or not; 0: paid by use
  double training_h = 0;            ///< above 0; it limits how many trainings one reserved set does in a year
};

/// The cost of a year with that many trainings. Reserved sets are as many as the trainings need, at least one.
double usd_a_year(const OwnedCost& own, double trainings);
double usd_a_year(const RentedCost& rent, double trainings);

struct BreakEven {
  /// The least use at which owning costs no more than renting, in trainings a year; 0: owning always does. None: even
  /// machines that train all year cost more than renting.
  std::optional<double> trainings_a_year;
  /// Months of use without a pause after which the capital is earned back; none: not within `life_years`.
  std::optional<double> months;

  /// The hours that these trainings take on the owned machines, and their share of the year.
  std::optional<double> hours_a_year(const OwnedCost& own) const;
  std::optional<double> utilization(const OwnedCost& own) const;
};
BreakEven break_even(const OwnedCost& own, const RentedCost& rent);

}  // namespace ganymede::plan
