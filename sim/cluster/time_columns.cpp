#include "sim/cluster/time_columns.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "common/dates.hpp"
#include "common/plain_text.hpp"
#include "sim/cluster/recorded_jobs.hpp"

namespace ganymede::sim {
namespace {

[[noreturn]] void fail_moment(const CsvTable& table, const CsvTable::Row& row, const std::string& column) {
  table.fail(row, column,
             fmt::format("found \"{}\", expected a time such as 2026-11-03T08:15:00", table.at(row, column)));
}

/// How many units of a cell's number since 1970 are a second: 1,000 of milliseconds; 1 if it is none.
double units_a_second(const std::string& cell) {
  const auto number = parse_number<double>(cell);
  return number && *number > 0 && std::isfinite(*number) ? std::round(*number / seconds_of_stamp(*number)) : 1;
}

}  // namespace

TimeColumn times_of(const CsvTable& table, std::initializer_list<const char*> names) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"_us", 1e6},        {"_ms", 1e3},         {"_millis", 1e3},       {"_milliseconds", 1e3},
      {"_s", 1},           {"_sec", 1},          {"_secs", 1},           {"_seconds", 1},
      {"_min", 1.0 / 60},  {"_mins", 1.0 / 60},  {"_minutes", 1.0 / 60}, {"_h", 1.0 / 3600},
      {"_hr", 1.0 / 3600}, {"_hrs", 1.0 / 3600}, {"_hours", 1.0 / 3600}};
  for (const char* name : names) {
    if (table.has(name)) return {name};
    for (const auto& [unit, a_second] : kUnits)
      if (const std::string with = name + std::string(unit); table.has(with)) return {with, a_second};
  }
  return {};
}

double checked_moment(const CsvTable& table, const CsvTable::Row& row, const std::string& column) {
  const auto time = moment_of(table.at(row, column));
  if (!time) fail_moment(table, row, column);
  return *time;
}

double checked_moment(const CsvTable& table, const CsvTable::Row& row, const TimeColumn& column) {
  constexpr double kLatest = 253402300800.0;  // seconds from 1970 to the end of the year 9999, as moment_of() takes
  const auto number = parse_number<double>(table.at(row, column.name));
  if (column.units == 0 || !number) return checked_moment(table, row, column.name);
  if (!(*number >= 0 && *number / column.units <= kLatest)) fail_moment(table, row, column.name);
  return *number / column.units;
}

bool is_in_seconds(const CsvTable& table, const TimeColumn& column) {
  bool some = false;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string& cell = table.at(row, column.name);
    if (units_a_second(cell) > 1) return false;
    some = some || parse_number<double>(cell).has_value();
  }
  return column.units == 0 && some;
}

double units_of_durations(const CsvTable& table, const std::string& length, const std::string& submit,
                          const std::string& start, const std::string& end) {
  double units = 1;
  for (const CsvTable::Row& row : table.rows()) {
    const auto duration = parse_number<double>(table.at(row, length));
    if (!duration || units_a_second(table.at(row, submit)) <= 1) continue;
    units = units_a_second(table.at(row, submit));
    if (start.empty() || end.empty()) continue;
    const double ran = moment_of(table.at(row, end)).value_or(0) - moment_of(table.at(row, start)).value_or(HUGE_VAL);
    if (ran > 0 && std::abs(*duration - ran) < std::abs(*duration / units - ran)) return 1;
  }
  return length.ends_with("_s") ? 1 : units;
}

std::optional<double> in_units(const std::string& cell, double units) {
  const auto number = parse_number<double>(cell);
  return number && std::isfinite(*number) ? std::optional(*number / units) : duration_of(cell);
}

}  // namespace ganymede::sim
