#pragma once
// Jobs that ran on a real cluster, gathered from files of many kinds, and the cells that those files have in common.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "sim/cluster/import_jobs.hpp"

namespace ganymede::sim {

inline constexpr std::int64_t kMostImportedGpus = 65536;  ///< that a job of a cluster may ask for
inline constexpr double kLongestImported = 1e9;           ///< seconds, 31 years, as in a trace

std::optional<std::int64_t> integer(std::string_view text);

/// Seconds: a number, or "[days-]hours:minutes:seconds".
std::optional<double> duration_of(std::string_view text);

/// The GPUs of "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1"; a count without a type is that of all types.
std::int64_t gpus_of(std::string_view tres);

/// A cell of a CSV, in quotes where it needs them.
std::string csv_cell(const std::string& cell);

/// Seconds from one moment to another; a time without a year (see moment_of) that is before the first is of the year
/// after.
double seconds_between(double from, double to);

/// Rows of jobs one after the other, by their arrivals.
std::string in_order(std::vector<std::pair<double, std::string>> rows);

/// A job that ran for a time that is known, or trains a workload.
struct RecordedJob {
  std::string name, owner = "all", priority, workload;
  double submitted = 0, seconds = 0;  ///< seconds since 1970 or since any other moment; how long it ran
  std::int64_t gpus = 0;
  bool lacks_limit = false;  ///< it waits or goes on in a queue, and nothing says until when
};

/// Gathers the jobs of a file. One that cannot be read is left out and counted, with the reason of the first.
class RecordedJobs {
 public:
  explicit RecordedJobs(std::string file) : file_(std::move(file)) {}

  /// Adds what `read` returns; a ConfigError of it is the reason why there is no job.
  void add(const std::function<RecordedJob()>& read);
  void add_all(const std::function<std::vector<RecordedJob>()>& read);

  /// The jobs by the times of their submission, from the first one on; with their workloads if they have any, which
  /// then say how long they run. Throws ConfigError if there are none: of a file
  /// in which none can be read, with the reason of the first.
  ImportedJobs written();
  /// Rows of one name become one job, which has the GPUs of all: for a trace of tasks.
  void join_tasks();

 private:
  void add(RecordedJob job);
  bool sort_by_submission();

  std::string file_, why_;
  std::vector<RecordedJob> jobs_;
  std::size_t without_gpus_ = 0, never_ran_ = 0, without_limit_ = 0, unreadable_ = 0;
};

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
