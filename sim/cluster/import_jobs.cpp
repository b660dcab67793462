#include "sim/cluster/import_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"
#include "sim/cluster/import_job_texts.hpp"
#include "sim/cluster/recorded_jobs.hpp"

namespace ganymede::sim {
namespace {

using Names = std::initializer_list<const char*>;

/// The first of these columns that the table has; throws if it has none.
std::string column_of(const CsvTable& table, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (table.has(name)) return name;
  throw ConfigError(fmt::format("{}: line 1: found no column {}", table.file(), list_of({names.begin(), names.end()})));
}

/// The first of these columns that the table has, or "".
std::string any_of(const CsvTable& table, Names names) {
  for (const char* name : names)
    if (table.has(name)) return name;
  return "";
}

double checked_duration(const CsvTable& table, const CsvTable::Row& row, const std::string& column,
                        std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0 && *seconds <= kLongestImported))
    table.fail(row, column, fmt::format("found \"{}\", expected a time of 31 years at most", table.at(row, column)));
  return *seconds;
}

std::int64_t checked_gpus(const CsvTable& table, const CsvTable::Row& row, const std::string& column, double gpus) {
  if (!(gpus <= static_cast<double>(kMostImportedGpus)))
    table.fail(row, column, fmt::format("found {:.0f} GPUs, expected at most {}", gpus, kMostImportedGpus));
  return static_cast<std::int64_t>(std::ceil(gpus));
}

/// Adds a remark that names the columns that are not read.
void note_columns(const CsvTable& table, const std::vector<std::string>& read, ImportedJobs& out) {
  std::vector<std::string> others;
  for (const std::string& name : table.names())
    if (std::find(read.begin(), read.end(), name) == read.end()) others.push_back(name);
  if (!others.empty()) out.remarks.push_back(fmt::format("columns that are not read: {}", fmt::join(others, ", ")));
}

/// True for what sacct says of a time that has not come: man sacct, Start and End.
bool is_unset(const std::string& time) { return time.empty() || time == "Unknown" || time == "None" || time == "N/A"; }

/// What `sacct -P` prints, or its columns of fixed width, or `squeue -o` with bars: of what is in a queue, the limit is
/// how long it runs.
ImportedJobs import_slurm(const CsvTable& table) {
  const std::string id = column_of(table, {"JobID", "JobIDRaw", "JOBID"});
  const std::string submit = column_of(table, {"Submit", "SUBMIT_TIME", "Eligible", "Start"});
  const bool between = !table.has("Elapsed") && !table.has("ElapsedRaw") && table.has("Start") && table.has("End");
  const std::string time = between ? "End" : column_of(table, {"ElapsedRaw", "Elapsed", "TIME_LIMIT", "TIME"}),
                    tres = column_of(
                        table, {"AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES", "TRES_ALLOC", "TRES_PER_NODE", "GRES"});
  const std::string asked = tres == "AllocTRES" ? any_of(table, {"ReqTRES"}) : "";  // has none before a job starts
  // What GRES counts is of a node, what TRES counts of the job.
  const bool of_node = tres.ends_with("GRES") || tres == "TRES_PER_NODE";
  const std::string nodes = of_node ? any_of(table, {"NNodes", "AllocNodes", "ReqNodes", "NODES"}) : "";
  const std::string owner = any_of(table, {"User", "Account", "USER"});
  RecordedJobs jobs(table.file());
  for (const CsvTable::Row& row : table.rows()) {
    if (table.at(row, id).find('.') != std::string::npos) continue;  // a step of a job
    jobs.add([&] {
      RecordedJob job;
      job.name = table.at(row, id);
      const std::string& counted = table.at(row, tres).empty() && !asked.empty() ? asked : tres;
      job.gpus = checked_gpus(table, row, counted,
                              static_cast<double>(gpus_of(table.at(row, counted))) *
                                  (nodes.empty() ? 1 : duration_of(table.at(row, nodes)).value_or(1)));
      if (table.has("Start") && is_unset(table.at(row, "Start"))) return job;  // it waits, or was cancelled before
      job.lacks_limit = between && is_unset(table.at(row, time));              // it goes on
      if (job.lacks_limit) return job;
      job.submitted = checked_moment(table, row, submit);
      job.seconds = checked_duration(
          table, row, time,
          between ? seconds_between(checked_moment(table, row, "Start"), checked_moment(table, row, time))
                  : duration_of(table.at(row, time)));
      if (!owner.empty()) job.owner = table.at(row, owner);
      if (table.has("Priority")) job.priority = table.at(row, "Priority");
      return job;
    });
  }
  ImportedJobs out = jobs.written();
  if (submit != "Submit" && submit != "SUBMIT_TIME")
    out.remarks.push_back(fmt::format("no column \"Submit\": jobs arrive at their \"{}\"", submit));
  if (time.starts_with("TIME"))
    out.remarks.emplace_back(time == "TIME" ? "a queue: jobs are taken to end now"
                                            : "a queue: jobs are taken to run until their time limit");
  note_columns(table, {id, submit, between ? "Start" : "", time, tres, asked, nodes, owner, "Priority"}, out);
  return out;
}

/// The columns of other clusters' tables by the names that they give to them.
struct JobColumns {
  std::string id, gpus, group, owner;
  TimeColumn submit, start, end, length;  ///< of `length`, or of `start` and `end`, no name if the table has none
  double units = 1;                       ///< of a duration's number that are a second

  /// The column that says when a job was over, or for how long it ran.
  const TimeColumn& decides() const { return length.empty() ? end : length; }
  /// The columns that say when something was: one may stand in two places.
  std::vector<TimeColumn> moments() const {
    std::vector<TimeColumn> out = {submit};
    if (!length.empty()) return out;
    if (start.name != submit.name) out.push_back(start);
    out.push_back(end);
    return out;
  }
};

/// Throws ConfigError if the name of one column of moments says a unit and another's does not, but has numbers that
/// would be taken for seconds: who adds a unit to a name easily forgets the other's.
void check_units(const CsvTable& table, const JobColumns& columns) {
  for (const TimeColumn& with : columns.moments())
    for (const TimeColumn& without : columns.moments())
      if (with.units > 0 && is_in_seconds(table, without))
        throw ConfigError(
            fmt::format("{0}: line 1: the name of {1} says a unit, that of {2} does not: expected one there too, as in "
                        "{2}_s or {2}_ms",
                        table.file(), with.name, without.name));
}

JobColumns columns_of(const CsvTable& table) {
  JobColumns columns;
  columns.id = any_of(table, {"job_id", "jobid", "job_name", "name", "job", "id", "id_job"});
  columns.gpus = column_of(table, {"gpu_num", "num_gpus", "num_gpu", "gpus", "gpu_count", "plan_gpu", "scale_factor",
                                   "num_replicas", "gres_used", "gres_alloc", "gres_req"});
  static constexpr auto kSubmits = {"submit_time", "submitted_time", "submission_time", "creation_time", "arrival_time",
                                    "submit",      "arrival",        "time_submit",     "start_time",    "start",
                                    "time",        "timestamp"};
  columns.submit = times_of(table, kSubmits);
  if (columns.submit.empty()) column_of(table, kSubmits);
  columns.start = times_of(table, {"start_time", "scheduled_time", "creation_time", "start", "begin", "time_start"});
  columns.end = times_of(table, {"end_time", "deletion_time", "stop_time", "finish_time", "end", "finish", "time_end"});
  columns.length = times_of(table, {"duration", "run_time", "runtime"});
  if (columns.length.empty() && (columns.start.empty() || columns.end.empty()))
    throw ConfigError(
        fmt::format("{}: line 1: no column says how long jobs ran: expected \"duration\", or \"start_time\" and "
                    "\"end_time\"; their names may end with a unit (_ms, _s, _min, _hours)",
                    table.file()));
  columns.group = any_of(table, {"vc", "virtual_cluster", "cluster"});
  columns.owner = any_of(table, {"user", "user_id", "owner", "id_user", "vc", "virtual_cluster", "cluster"});
  if (columns.length.units > 0)
    columns.units = columns.length.units;
  else if (!columns.length.empty())
    columns.units =
        units_of_durations(table, columns.length.name, columns.submit.name, columns.start.name, columns.end.name);
  check_units(table, columns);
  return columns;
}

/// The job of a row; one without GPUs, or that never ran, has no times.
RecordedJob job_of(const CsvTable& table, const CsvTable::Row& row, const JobColumns& columns) {
  RecordedJob job;
  job.name = columns.id.empty() ? fmt::format("line-{}", row.line) : table.at(row, columns.id);
  if (!columns.owner.empty() && !table.at(row, columns.owner).empty()) job.owner = table.at(row, columns.owner);
  const std::string& count = table.at(row, columns.gpus);
  const bool is_gres = columns.gpus.starts_with("gres_");  // "gpu:volta:2", as Slurm's database keeps it
  const auto asked = count.empty() ? std::optional(0.0)
                     : is_gres     ? std::optional(static_cast<double>(gpus_of(count)))
                                   : duration_of(count);
  if (!asked) table.fail(row, columns.gpus, fmt::format("found \"{}\", expected a number", count));
  double wanted = *asked;
  if (columns.gpus == "plan_gpu")
    wanted *= 0.01 * (table.has("inst_num") ? duration_of(table.at(row, "inst_num")).value_or(1) : 1);
  job.gpus = checked_gpus(table, row, columns.gpus, wanted);
  if (job.gpus <= 0 || table.at(row, columns.decides().name).empty()) return job;
  if (columns.length.empty() && table.at(row, columns.start.name).empty()) return job;
  job.submitted = checked_moment(table, row, columns.submit);
  job.seconds = columns.length.empty() ? checked_duration(table, row, columns.end.name,
                                                          seconds_between(checked_moment(table, row, columns.start),
                                                                          checked_moment(table, row, columns.end)))
                                       : checked_duration(table, row, columns.length.name,
                                                          in_units(table.at(row, columns.length.name), columns.units));
  return job;
}

/// Adds remarks on units that are likely to be meant otherwise; `longest` is a job's length by numbers without a unit.
void note_units(const CsvTable& table, const JobColumns& columns, double longest, ImportedJobs& out) {
  if (columns.length.empty() && columns.start.units != columns.end.units && columns.start.units > 0 &&
      columns.end.units > 0)
    out.remarks.push_back(
        fmt::format("{} and {} are in different units, as their names say", columns.start.name, columns.end.name));
  if (constexpr double kLong = 30 * 86400.0; longest <= kLong) return;
  std::vector<std::string> names;
  for (const TimeColumn& column : columns.moments())
    if (is_in_seconds(table, column)) names.push_back(column.name + "_ms");
  if (!columns.length.empty()) names.push_back(columns.length.name + "_ms");
  out.remarks.push_back(fmt::format(
      "the numbers of {} are taken for seconds, by which a job runs for {:.0f} days: call the {} {} if they "
      "are milliseconds",
      columns.decides().name, longest / 86400, names.size() == 1 ? "column" : "columns", fmt::join(names, ", ")));
}

/// Tables of other clusters: SenseTime's Helios, ACME (Seren, Kalos), Alibaba's PAI of 2020, which counts GPUs in
/// hundredths and by instance, and of 2023.
ImportedJobs import_table(const CsvTable& table, const std::string& virtual_cluster) {
  const JobColumns columns = columns_of(table);
  if (!virtual_cluster.empty() && columns.group.empty())
    throw ConfigError(fmt::format("--virtual-cluster {}: {} has no virtual clusters", virtual_cluster, table.file()));
  RecordedJobs jobs(table.file());
  double longest = 0;  // of the jobs whose length follows from numbers without a unit
  for (const CsvTable::Row& row : table.rows()) {
    if (!virtual_cluster.empty() && table.at(row, columns.group) != virtual_cluster) continue;
    jobs.add([&] {
      RecordedJob job = job_of(table, row, columns);
      if (columns.decides().units == 0 && parse_number<double>(table.at(row, columns.decides().name)))
        longest = std::max(longest, job.seconds);
      return job;
    });
  }
  if (columns.gpus == "plan_gpu") jobs.join_tasks();
  ImportedJobs out = jobs.written();
  note_units(table, columns, longest, out);
  if (columns.length.units == 0 && columns.units > 1)
    out.remarks.push_back(fmt::format("as those of {}, the numbers of {} are taken for {}seconds", columns.submit.name,
                                      columns.length.name,
                                      columns.units <= 1e3   ? "milli"
                                      : columns.units <= 1e6 ? "micro"
                                                             : "nano"));
  note_columns(
      table,
      {columns.id, columns.gpus, columns.submit.name, columns.length.empty() ? columns.start.name : columns.length.name,
       columns.decides().name, columns.owner, columns.group, columns.gpus == "plan_gpu" ? "inst_num" : ""},
      out);
  return out;
}

ImportedJobs import_gavel(const CsvTable& table, const std::string& virtual_cluster) {
  const std::vector<std::string> columns = {"virtual_cluster", "arrival_s",     "gpus",
                                            "model",           "batch_per_gpu", "total_steps"};
  for (const std::string& column : columns) column_of(table, {column.c_str()});
  ImportedJobs out{"job,arrival_s,gpus,model,batch_per_gpu,total_steps,owner\n", {}};
  std::vector<std::pair<double, std::string>> rows;
  for (const CsvTable::Row& row : table.rows()) {
    const std::string& of = table.at(row, "virtual_cluster");
    if (!virtual_cluster.empty() && of != virtual_cluster) continue;
    std::string line = csv_cell(fmt::format("{}-{}", of, rows.size() + 1));
    for (const char* column : {"arrival_s", "gpus", "model", "batch_per_gpu", "total_steps", "virtual_cluster"})
      line += "," + csv_cell(table.at(row, column));
    rows.emplace_back(parse_number<double>(table.at(row, "arrival_s")).value_or(0), line + "\n");
  }
  if (rows.empty())
    throw ConfigError(fmt::format("{}: has no jobs of the virtual cluster \"{}\"", table.file(), virtual_cluster));
  out.remarks.push_back(counted(rows.size(), "job"));
  out.csv += in_order(std::move(rows));
  note_columns(table, columns, out);
  return out;
}

/// A workload of Pollux's simulator (petuum/adaptdl): which application each job trains, and not for how long.
ImportedJobs import_pollux(const CsvTable& table) {
  std::set<std::string> applications;
  RecordedJobs jobs(table.file());
  for (const CsvTable::Row& row : table.rows())
    jobs.add([&] {
      RecordedJob job;
      job.name = table.at(row, "name");
      job.submitted = checked_moment(table, row, "time");
      const auto replicas = duration_of(table.at(row, "num_replicas"));
      if (!replicas)
        table.fail(row, "num_replicas", fmt::format("found \"{}\", expected a number", table.at(row, "num_replicas")));
      job.gpus = checked_gpus(table, row, "num_replicas", *replicas);
      job.seconds = 1;  // that it ran
      job.workload = table.at(row, "application");
      if (job.workload.empty()) table.fail(row, "application", "found nothing, expected what the job trains");
      if (job.gpus > 0) applications.insert('"' + job.workload + '"');
      return job;
    });
  ImportedJobs out = jobs.written();
  out.remarks.push_back(
      fmt::format("Pollux's workloads do not say how long jobs run: the cluster's \"workloads\" must have {}",
                  fmt::join(applications, ", ")));
  note_columns(table, {"name", "time", "num_replicas", "application"}, out);
  return out;
}

/// Alibaba's pai_task_table.csv has no line of names. Its columns are those of the README beside it
/// (alibaba/clusterdata, cluster-trace-gpu-v2020).
constexpr std::string_view kPaiTasks =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";

bool is_pai_task(std::string_view line) {
  if (std::count(line.begin(), line.end(), ',') != 9) return false;
  for (const char* status : {",Terminated,", ",Failed,", ",Running,", ",Waiting,"})
    if (line.find(status) != line.npos) return true;
  return false;
}

/// What `sacct --delimiter` puts between names such as JobID and Submit; nothing if a comma, or blanks do.
char slurm_delimiter(std::string_view first) {
  if (first.find('|') != first.npos) return '|';
  const std::size_t at = first.find("JobID");
  if (at == first.npos || first.find("Submit") == first.npos) return '\0';
  const std::size_t end = at + (first.substr(at).starts_with("JobIDRaw") ? 8 : 5);
  const char found = end < first.size() && first[end] != '\r' ? first[end] : at > 0 ? first[at - 1] : ' ';
  return found == ',' || found == ' ' ? '\0' : found;
}

/// Colons within times, hh:mm:ss, and in "gres/gpu" as bytes that are no text, where colons part the cells.
std::string without_colons(std::string_view text, char other) {
  std::string out(text);
  const auto is_digit = [&](std::size_t at) { return at < out.size() && out[at] >= '0' && out[at] <= '9'; };
  for (std::size_t at = 0; (at = out.find("gres/gpu:", at)) != out.npos;) out[at + 8] = other;
  for (std::size_t at = 0; (at = out.find_first_of("T-:", at)) != out.npos; ++at) {
    const auto pair = [&](std::size_t from) { return is_digit(at + from) && is_digit(at + from + 1); };
    if (pair(1) && pair(4) && pair(7) && !is_digit(at + 9) && out[at + 3] == ':' && out[at + 6] == ':')
      out[at + 3] = out[at + 6] = other;
  }
  return out;
}

std::string slurm_cells_as_csv(std::string_view text, char delimiter) {
  if (delimiter != ':') return cells_as_csv(text, delimiter);
  std::string out = cells_as_csv(without_colons(text, '\x1f'), ':');
  std::replace(out.begin(), out.end(), '\x1f', ':');
  return out;
}

}  // namespace

ImportedJobs import_jobs(std::string_view text, const std::string& name, const std::string& virtual_cluster) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool is_csv = first.find(',') != first.npos && first.find('\t') == first.npos && !is_json(text);
  if (!is_csv && !virtual_cluster.empty())
    throw ConfigError(fmt::format("--virtual-cluster {}: {} has no virtual clusters", virtual_cluster, name));
  if (is_json(text)) return import_job_json(text, name);
  if (is_swf(text)) return import_swf(text, name);
  const bool names_slurm = first.find("JobID") != first.npos &&
                           (first.find("Submit") != first.npos || first.find("AllocTRES") != first.npos);
  if (first.find('\t') != first.npos && !names_slurm) return import_gavel_tabs(text, name);
  const char bar = slurm_delimiter(first);
  const bool fixed = bar == '\0' && is_fixed_width(text), slurm = bar != '\0' || fixed || names_slurm;
  const std::string prepared = bar != '\0'          ? slurm_cells_as_csv(text, bar)
                               : fixed              ? fixed_width_as_csv(text)
                               : is_pai_task(first) ? std::string(kPaiTasks) + std::string(text)
                                                    : std::string(text);
  std::vector<std::string> unlike;
  const CsvTable table = CsvTable::parse(prepared, name, &unlike);
  ImportedJobs out = slurm                                                      ? import_slurm(table)
                     : table.has("virtual_cluster") && table.has("total_steps") ? import_gavel(table, virtual_cluster)
                     : table.has("application") && table.has("num_replicas") && !table.has("duration")
                         ? import_pollux(table)
                         : import_table(table, virtual_cluster);
  if (!unlike.empty())
    out.remarks.push_back(fmt::format("{} rows left out; the first: {}", unlike.size(), unlike.front()));
  return out;
}

}  // namespace ganymede::sim
