#pragma once
// A quantity that was recorded over time: capacity, prices, carbon intensity.

#include <filesystem>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// A step function of time: each value holds until the time of the next row, the last one for ever.
struct Series {
  struct Row {
    Seconds at;
    double value;
  };
  std::vector<Row> rows;  ///< By ascending time.

  /// The value at `time`; 0 before the first row.
  double at(Seconds time) const;
  /// The time of the next row after `time`; negative if there is none.
  Seconds next_after(Seconds time) const;
};

/// The integral of the series from `from` to `to`, in its unit times seconds.
double integral(const Series& series, Seconds from, Seconds to);

/// Reads a CSV file with a header and two columns: `time_s` and a value, such as `nodes`. Throws ConfigError with file
/// and line for missing or extra columns, an empty cell, a value below zero or a time that is not after the one before,
/// and for a file without rows.
Series read_series(const std::filesystem::path& file);

}  // namespace ganymede::sim
