#include "sim/cluster/import_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>

#include "common/csv.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"

namespace ganymede::sim {
namespace {

/// Cells separated by '|' as CSV, with quotes where cells need them.
std::string as_csv(std::string_view text) {
  std::string out;
  std::string cell;
  const auto end_cell = [&](char separator) {
    std::string doubled;
    for (const char c : cell) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += "\"" + doubled + "\"" + separator;
    cell.clear();
  };
  for (const char c : text) {
    if (c == '\r') continue;
    if (c == '|' || c == '\n')
      end_cell(c == '|' ? ',' : '\n');
    else
      cell += c;
  }
  if (!cell.empty()) end_cell('\n');
  return out;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Seconds of "2026-11-03T08:15:00" since 1970, whatever the time zone.
std::optional<std::int64_t> moment(std::string_view text) {
  constexpr std::string_view kPattern = "0000-00-00T00:00:00";
  if (text.size() != kPattern.size() || text[10] != 'T') return std::nullopt;
  const auto part = [&](std::size_t from, std::size_t size) { return integer(text.substr(from, size)); };
  const auto year = part(0, 4), month = part(5, 2), day = part(8, 2), hour = part(11, 2), minute = part(14, 2),
             second = part(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * 86400 + *hour * 3600 + *minute * 60 + *second;
}

constexpr std::int64_t kMostImportedGpus = 65536;         // that a job of a cluster may ask for
constexpr std::int64_t kLongestImported = 1'000'000'000;  // seconds, 31 years, as in a trace

/// Such a number of days, hours, minutes or seconds that the sum does not overflow.
std::optional<std::int64_t> part_of_time(std::string_view text) {
  const auto value = integer(text);
  return value && *value >= 0 && *value <= kLongestImported ? value : std::nullopt;
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

/// The GPUs of "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1"; a count without a type is that of all types.
std::int64_t gpus_of(const std::string& tres) {
  std::int64_t typed = 0;
  for (std::size_t at = 0; at < tres.size();) {
    const std::size_t end = std::min(tres.find(',', at), tres.size());
    const std::string_view part = std::string_view(tres).substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      const auto count = integer(part.substr(equals + 1)).value_or(0);
      if (part.substr(0, equals) == "gres/gpu") return count;
      if (part.starts_with("gres/gpu:")) typed += std::clamp<std::int64_t>(count, 0, kMostImportedGpus + 1);
    }
    at = end + 1;
  }
  return typed;
}

struct SlurmJob {
  std::string name, owner, priority;
  std::int64_t submitted = 0, seconds = 0, gpus = 0;
};

/// The first of these columns that the table has; throws if it has none.
std::string column_of(const CsvTable& table, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (table.has(name)) return name;
  throw ConfigError(fmt::format("{}: line 1: found no column {}", table.file(), list_of({names.begin(), names.end()})));
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// Adds a remark that names the columns that are not read.
void note_columns(const CsvTable& table, const std::vector<std::string>& read, ImportedJobs& out) {
  std::vector<std::string> others;
  for (const std::string& name : table.names())
    if (std::find(read.begin(), read.end(), name) == read.end()) others.push_back(name);
  if (!others.empty()) out.remarks.push_back(fmt::format("columns that are not read: {}", fmt::join(others, ", ")));
}

ImportedJobs import_slurm(const CsvTable& table) {
  const std::string id = column_of(table, {"JobID", "JobIDRaw"}), submit = column_of(table, {"Submit"});
  const std::string time = column_of(table, {"ElapsedRaw", "Elapsed"}),
                    tres = column_of(table, {"AllocTRES", "ReqTRES"});
  std::vector<SlurmJob> jobs;
  std::size_t without_gpus = 0, never_ran = 0;
  for (const CsvTable::Row& row : table.rows()) {
    SlurmJob job;
    job.name = table.at(row, id);
    if (job.name.find('.') != std::string::npos) continue;  // a step of a job
    const auto submitted = moment(table.at(row, submit));
    if (!submitted)
      table.fail(row, submit,
                 fmt::format("found \"{}\", expected a time such as 2026-11-03T08:15:00", table.at(row, submit)));
    const auto seconds = time == "ElapsedRaw" ? integer(table.at(row, time)) : elapsed(table.at(row, time));
    if (!seconds || *seconds < 0 || *seconds > kLongestImported)
      table.fail(row, time, fmt::format("found \"{}\", expected a time of 31 years at most", table.at(row, time)));
    job.submitted = *submitted;
    job.seconds = *seconds;
    job.gpus = gpus_of(table.at(row, tres));
    if (job.gpus > kMostImportedGpus)
      table.fail(row, tres, fmt::format("found {} GPUs, expected at most {}", job.gpus, kMostImportedGpus));
    job.owner = table.has("User") ? table.at(row, "User") : table.has("Account") ? table.at(row, "Account") : "all";
    if (table.has("Priority")) job.priority = table.at(row, "Priority");
    if (job.gpus <= 0)
      ++without_gpus;
    else if (job.seconds == 0)
      ++never_ran;
    else
      jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const SlurmJob& a, const SlurmJob& b) { return a.submitted < b.submitted; });
  if (!jobs.empty() && jobs.back().submitted - jobs.front().submitted > kLongestImported)
    throw ConfigError(fmt::format("{}: the job {} was submitted more than 31 years after the job {}", table.file(),
                                  jobs.back().name, jobs.front().name));
  ImportedJobs out{"job,arrival_s,gpus,duration_s,owner,priority\n", {}};
  std::map<std::string, int> times;  // that a job's number was there before: `sacct -D` has a row for each requeue
  std::size_t repeated = 0;
  for (const SlurmJob& job : jobs) {
    const int before = times[job.name]++;
    const std::string name = before == 0 ? job.name : fmt::format("{}.{}", job.name, before + 1);
    if (before > 0) ++repeated;
    out.csv += fmt::format("{},{},{},{},{},{}\n", quoted(name), job.submitted - jobs.front().submitted, job.gpus,
                           job.seconds, quoted(job.owner), quoted(job.priority));
  }
  out.remarks.push_back(
      fmt::format("{} jobs; left out: {} without GPUs, {} that never ran", jobs.size(), without_gpus, never_ran));
  if (repeated > 0)
    out.remarks.push_back(
        fmt::format("{} jobs have the number of an earlier one: they are called JOB.2, and so on", repeated));
  note_columns(table, {id, submit, time, tres, table.has("User") ? "User" : "Account", "Priority"}, out);
  if (jobs.empty()) throw ConfigError(fmt::format("{}: no job with GPUs has run", table.file()));
  return out;
}

ImportedJobs import_gavel(const CsvTable& table, const std::string& virtual_cluster) {
  const std::vector<std::string> columns = {"virtual_cluster", "arrival_s",     "gpus",
                                            "model",           "batch_per_gpu", "total_steps"};
  for (const std::string& column : columns) column_of(table, {column.c_str()});
  ImportedJobs out{"job,arrival_s,gpus,model,batch_per_gpu,total_steps,owner\n", {}};
  std::size_t jobs = 0;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string& of = table.at(row, "virtual_cluster");
    if (!virtual_cluster.empty() && of != virtual_cluster) continue;
    out.csv += quoted(fmt::format("{}-{}", of, ++jobs));
    for (const char* column : {"arrival_s", "gpus", "model", "batch_per_gpu", "total_steps", "virtual_cluster"})
      out.csv += "," + quoted(table.at(row, column));
    out.csv += "\n";
  }
  if (jobs == 0)
    throw ConfigError(fmt::format("{}: has no jobs of the virtual cluster \"{}\"", table.file(), virtual_cluster));
  out.remarks.push_back(fmt::format("{} jobs", jobs));
  note_columns(table, columns, out);
  return out;
}

}  // namespace

ImportedJobs import_jobs(std::string_view text, const std::string& name, const std::string& virtual_cluster) {
  const std::string_view first = text.substr(0, text.find('\n'));
  if (first.find('|') != std::string_view::npos) {
    if (!virtual_cluster.empty())
      throw ConfigError(fmt::format("--virtual-cluster {}: {} is what `sacct -P` prints, which has no virtual clusters",
                                    virtual_cluster, name));
    return import_slurm(CsvTable::parse(as_csv(text), name));
  }
  const CsvTable table = CsvTable::parse(text, name);
  if (!table.has("virtual_cluster"))
    throw ConfigError(
        fmt::format("{}: line 1: neither what `sacct -P` prints (cells separated by '|') nor a trace of Gavel (a "
                    "column \"virtual_cluster\")",
                    name));
  return import_gavel(table, virtual_cluster);
}

}  // namespace ganymede::sim
