#pragma once
// How old prices are today, in words. Results do not say it, because they are the same on any day.

#include <string>

#include "cli/command.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::cli {

/// The day of GANYMEDE_NOW, or today, as YYYY-MM-DD.
std::string today();
/// Remarks on the age of a price of that date (YYYY-MM-DD; anything else is passed over) if that is above a month.
void remark_price_age(const Shared& shared, const std::string& date);
/// The same for the oldest price of the scenario's pools, leaving out those of machines of the user's own.
void remark_price_age(const Shared& shared, const sim::Scenario& scenario);

}  // namespace ganymede::cli
