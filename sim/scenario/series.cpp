#include "sim/scenario/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"

namespace ganymede::sim {
namespace {

constexpr double kMax = 1e12;

double number(std::string_view cell, const std::string& where, const char* what) {
  if (cell.empty()) throw ConfigError(fmt::format("{}: {} is missing: a gap in the recording", where, what));
  const auto value = parse_number<double>(cell);
  if (!value || !(*value >= 0 && *value <= kMax))
    throw ConfigError(fmt::format("{}: found \"{}\", expected {} as a number from 0", where, cell, what));
  return *value;
}

}  // namespace

double Series::at(Seconds time) const {
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), time, [](Seconds when, const Row& row) { return when < row.at; });
  return after == rows.begin() ? 0 : std::prev(after)->value;
}

Seconds Series::next_after(Seconds time) const {
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), time, [](Seconds when, const Row& row) { return when < row.at; });
  return after == rows.end() ? Seconds{-1} : after->at;
}

double integral(const Series& series, Seconds from, Seconds to) {
  double sum = 0;
  while (from < to) {
    const Seconds next = series.next_after(from);
    const Seconds until = next.si < 0 ? to : std::min(next, to);
    sum += series.at(from) * (until - from).si;
    from = until;
  }
  return sum;
}

Series read_series(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  Series series;
  std::string line;
  for (int at = 1; std::getline(lines, line); ++at) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string where = fmt::format("{}:{}", file.string(), at);
    const auto comma = line.find(',');
    if (at == 1) {
      if (!line.starts_with("time_s,") || line.find(',', comma + 1) != std::string::npos)
        throw ConfigError(
            fmt::format("{}: found \"{}\", expected a header \"time_s,\" and one more column", where, line));
      continue;
    }
    if (comma == std::string::npos || line.find(',', comma + 1) != std::string::npos)
      throw ConfigError(fmt::format("{}: found \"{}\", expected two columns", where, line));
    const Seconds time{number(std::string_view(line).substr(0, comma), where, "the time in seconds")};
    const double value = number(std::string_view(line).substr(comma + 1), where, "the value");
    if (!series.rows.empty() && time <= series.rows.back().at)
      throw ConfigError(
          fmt::format("{}: the time {} s does not come after {} s in the row before: the recording goes "
                      "backwards",
                      where, time.si, series.rows.back().at.si));
    series.rows.push_back({time, value});
  }
  if (series.rows.empty()) throw ConfigError(fmt::format("{}: no rows: nothing was recorded", file.string()));
  return series;
}

}  // namespace ganymede::sim
