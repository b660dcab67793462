#pragma once
// Something that changes over time and was recorded: capacity, prices, carbon intensity.

#include <filesystem>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// A step function of time: each value holds until the next one's time, the last one for ever.
struct Series {
  struct Row {
    Seconds at;
    double value;
  };
  std::vector<Row> rows;  ///< ascending

  /// 0 before the first row.
  double at(Seconds time) const;
  /// The time of the next row after `time`; negative: none.
  Seconds next_after(Seconds time) const;
};

/// Of the series over a time, in its unit times seconds.
double integral(const Series& series, Seconds from, Seconds to);

/// Reads a CSV of two columns with a header: time_s and a value, such as `nodes`. Missing or further columns, an empty
/// cell, a value below zero, a time that does not come after the one before: ConfigError with file and line. A file
/// without rows is one too.
Series read_series(const std::filesystem::path& file);

}  // namespace ganymede
