#include "sim/cluster/recorded_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"

namespace ganymede::sim {
namespace {

/// Reads a number of days, hours, minutes or seconds that is small enough for their sum not to overflow.
std::optional<std::int64_t> part_of_time(std::string_view text) {
  const auto value = integer(text);
  return value && *value >= 0 && *value <= 1'000'000'000 ? value : std::nullopt;
}

/// Seconds of "[days-]hours:minutes:seconds".
std::optional<std::int64_t> elapsed(std::string_view text) {
  std::int64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto count = part_of_time(text.substr(0, dash));
    if (!count) return std::nullopt;
    days = *count;
    text.remove_prefix(dash + 1);
  }
  std::int64_t seconds = 0;
  for (int parts = 0; parts < 3; ++parts) {
    const std::size_t colon = text.find(':');
    const auto value = part_of_time(text.substr(0, colon));
    if (!value) return std::nullopt;
    seconds = seconds * 60 + *value;
    if (colon == std::string_view::npos) return days * 86400 + seconds;
    text.remove_prefix(colon + 1);
  }
  return std::nullopt;
}

constexpr double kYear1972 = 63072000, kLeapYear = 366 * 86400.0;  // in seconds; moment_of takes it for an unsaid one

bool lacks_year(double moment) { return moment >= kYear1972 && moment < kYear1972 + kLeapYear; }

}  // namespace

double seconds_between(double from, double to) {
  return to - from + (to < from && lacks_year(from) && lacks_year(to) ? kLeapYear : 0);
}

std::optional<std::int64_t> integer(std::string_view text) { return parse_number<std::int64_t>(text); }

std::optional<double> duration_of(std::string_view text) {
  if (const auto number = parse_number<double>(text)) return std::isfinite(*number) ? number : std::nullopt;
  if (const auto seconds = elapsed(text)) return static_cast<double>(*seconds);
  return std::nullopt;
}

std::int64_t gpus_of(std::string_view tres) {
  std::int64_t typed = 0;
  for (std::size_t at = 0; at < tres.size();) {
    const std::size_t end = std::min(tres.find(',', at), tres.size());
    std::string_view part = tres.substr(at, end - at);
    part = part.substr(0, part.find('('));  // "gpu:v100:2(S:0-1)" says on which sockets
    const std::size_t equals = part.find('=');
    // What squeue says of a node: "gres:gpu:2", and since Slurm 21 "gres/gpu:2".
    if (equals == part.npos && (part.starts_with("gres:") || part.starts_with("gres/"))) part.remove_prefix(5);
    if (part == "gpu" || part.starts_with("gpu:")) {  // a column of GRES: gpu, gpu:2 or gpu:v100:2
      const std::string_view said = part.substr(part.rfind(':') + 1);
      const bool is_number = !said.empty() && said.find_first_not_of("0123456789") == said.npos;
      const auto count = integer(said).value_or(is_number ? kMostImportedGpus + 1 : 1);
      typed += std::clamp<std::int64_t>(count, 0, kMostImportedGpus + 1);
    } else if (equals != std::string_view::npos) {
      const auto count = integer(part.substr(equals + 1)).value_or(0);
      if (part.substr(0, equals) == "gres/gpu") return count;
      if (part.starts_with("gres/gpu:")) typed += std::clamp<std::int64_t>(count, 0, kMostImportedGpus + 1);
    }
    at = end + 1;
  }
  return typed;
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string in_order(std::vector<std::pair<double, std::string>> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (const auto& [arrival, row] : rows) out += row;
  return out;
}

void RecordedJobs::add(RecordedJob job) {
  if (!(job.seconds <= kLongestImported))
    throw ConfigError(fmt::format("{}: the job {} ran for more than 31 years", file_, job.name));
  if (job.gpus > kMostImportedGpus)
    throw ConfigError(
        fmt::format("{}: the job {} has {} GPUs, expected at most {}", file_, job.name, job.gpus, kMostImportedGpus));
  if (job.gpus <= 0)
    ++without_gpus_;
  else if (job.lacks_limit)
    ++without_limit_;
  else if (!(job.seconds > 0))
    ++never_ran_;
  else
    jobs_.push_back(std::move(job));
}

void RecordedJobs::add(const std::function<RecordedJob()>& read) {
  add_all([&] { return std::vector<RecordedJob>{read()}; });
}

void RecordedJobs::add_all(const std::function<std::vector<RecordedJob>()>& read) {
  try {
    for (RecordedJob& job : read()) add(std::move(job));
  } catch (const ConfigError& error) {
    if (unreadable_++ == 0) why_ = error.what();
  }
}

void RecordedJobs::join_tasks() {
  std::map<std::string, RecordedJob> joined;
  for (const RecordedJob& task : jobs_) {
    const auto [at, added] = joined.emplace(task.name, task);
    if (added) continue;
    RecordedJob& job = at->second;
    const double end = std::max(job.submitted + job.seconds, task.submitted + task.seconds);
    job.submitted = std::min(job.submitted, task.submitted);
    job.seconds = end - job.submitted;
    job.gpus = std::min(job.gpus + task.gpus, kMostImportedGpus);
  }
  jobs_.clear();
  for (auto& [name, job] : joined) jobs_.push_back(std::move(job));
}

/// Returns true if no time has a year and half of one lies between two jobs: then a New Year came between, and those
/// that seem later were earlier.
bool RecordedJobs::sort_by_submission() {
  const auto sort = [&] {
    std::stable_sort(jobs_.begin(), jobs_.end(),
                     [](const RecordedJob& a, const RecordedJob& b) { return a.submitted < b.submitted; });
  };
  sort();
  if (!lacks_year(jobs_.front().submitted) || !lacks_year(jobs_.back().submitted)) return false;
  const auto gap = std::adjacent_find(jobs_.begin(), jobs_.end(), [](const RecordedJob& a, const RecordedJob& b) {
    return b.submitted - a.submitted > kLeapYear / 2;
  });
  if (gap == jobs_.end()) return false;
  std::for_each(gap + 1, jobs_.end(), [](RecordedJob& job) { job.submitted -= kLeapYear; });
  sort();
  return true;
}

ImportedJobs RecordedJobs::written() {
  if (jobs_.empty() && unreadable_ > 0) throw ConfigError(why_);
  if (jobs_.empty() && without_limit_ > 0)
    throw ConfigError(
        fmt::format("{}: no job with GPUs has a time limit or an end: nothing says how long they run", file_));
  if (jobs_.empty()) throw ConfigError(fmt::format("{}: no job with GPUs has run", file_));
  const bool over_new_year = sort_by_submission();
  const double first = jobs_.front().submitted;
  if (jobs_.back().submitted - first > kLongestImported)
    throw ConfigError(fmt::format("{}: the job {} was submitted more than 31 years after the job {}", file_,
                                  jobs_.back().name, jobs_.front().name));
  const bool trains = !jobs_.front().workload.empty();
  ImportedJobs out{trains ? "job,arrival_s,gpus,workload\n" : "job,arrival_s,gpus,duration_s,owner,priority\n", {}};
  std::map<std::string, int> times;  // that a job's number was there before: `sacct -D` has a row for each requeue
  std::set<std::string> names;
  std::size_t repeated = 0;
  for (const RecordedJob& job : jobs_) {
    std::string name = job.name;
    const auto [number, is_first] = times.try_emplace(job.name, 1);
    if (!is_first) ++repeated;
    while (!names.insert(name).second) name = fmt::format("{}.{}", job.name, ++number->second);
    out.csv += fmt::format("{},{},{},", csv_cell(name), job.submitted - first, job.gpus);
    out.csv += trains ? csv_cell(job.workload) + "\n"
                      : fmt::format("{},{},{}\n", job.seconds, csv_cell(job.owner), csv_cell(job.priority));
  }
  out.remarks.push_back(fmt::format("{}; left out: {} without GPUs, {} that never ran", counted(jobs_.size(), "job"),
                                    without_gpus_, never_ran_));
  if (without_limit_ > 0)
    out.remarks.push_back(fmt::format("{} without a time limit or an end left out: nothing says how long {}",
                                      counted(without_limit_, "job"), without_limit_ == 1 ? "it runs" : "they run"));
  if (unreadable_ > 0) out.remarks.push_back(fmt::format("{} that cannot be read; the first: {}", unreadable_, why_));
  if (repeated > 0)
    out.remarks.push_back(fmt::format("{} {} the number of an earlier one: such are called JOB.2, and so on",
                                      counted(repeated, "job"), repeated == 1 ? "has" : "have"));
  if (over_new_year)
    out.remarks.emplace_back("the times have no year: those of the year's end are taken to be before the others");
  return out;
}

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
