#pragma once
// Columns of times in tables of jobs: their units, as their names or their numbers say them.

#include <initializer_list>
#include <optional>
#include <string>

#include "common/csv.hpp"

namespace ganymede::sim {

/// A column of times, and how many of its units are a second if its name ends with them ("submit_ms"), else 0.
struct TimeColumn {
  std::string name;
  double units = 0;
  bool empty() const { return name.empty(); }
};

/// The first column of one of these names, also with a unit behind it.
TimeColumn times_of(const CsvTable& table, std::initializer_list<const char*> names);

/// Seconds since 1970, or since whenever the table counts from. Throws ConfigError with the place.
double checked_moment(const CsvTable& table, const CsvTable::Row& row, const std::string& column);
double checked_moment(const CsvTable& table, const CsvTable::Row& row, const TimeColumn& column);

/// Whether numbers of the column, whose name says no unit, are taken for seconds: they are no milliseconds since 1970.
bool is_in_seconds(const CsvTable& table, const TimeColumn& column);

/// The units of a column of durations in a second: those of the times, unless the durations are longer than the times
/// from start to end in them.
double units_of_durations(const CsvTable& table, const std::string& length, const std::string& submit,
                          const std::string& start, const std::string& end);

/// Seconds of a duration; a number is of so many units a second, "1:30:00" is not.
std::optional<double> in_units(const std::string& cell, double units);

}  // namespace ganymede::sim
