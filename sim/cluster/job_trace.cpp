#include "sim/cluster/job_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/csv.hpp"
#include "common/json.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"

namespace ganymede::sim {
namespace {

constexpr std::int64_t kMostGpus = 65536;
constexpr double kLongest = 1e9;  // seconds: 31 years

/// One row of a trace, whose cells are read as numbers within bounds.
class TraceRow {
 public:
  TraceRow(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {}

  std::string text(const char* column) const { return table_.has(column) ? table_.at(row_, column) : ""; }
  bool has(const char* column) const { return !text(column).empty(); }
  double number(const char* column, double low, double high) const {
    const std::string cell = text(column);
    const auto value = parse_number<double>(cell);
    if (!value || !(*value >= low && *value <= high))
      fail(column, fmt::format("found \"{}\", expected a number from {:.10g} to {:.10g}", cell, low, high));
    return *value;
  }
  std::int64_t whole(const char* column, std::int64_t low, std::int64_t high) const {
    const double value = number(column, static_cast<double>(low), static_cast<double>(high));
    if (value != std::floor(value)) fail(column, fmt::format("found {}, expected a whole number", value));
    return static_cast<std::int64_t>(value);
  }
  int count(const char* column) const { return static_cast<int>(whole(column, 1, kMostGpus)); }
  [[noreturn]] void fail(const char* column, const std::string& message) const { table_.fail(row_, column, message); }
  std::size_t line() const { return row_.line; }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
};

std::size_t workload_of(const TraceRow& row, Cluster& cluster) {
  if (row.has("workload")) {
    const std::string name = row.text("workload");
    std::vector<std::string> names;
    for (std::size_t i = 0; i < cluster.workloads.size(); ++i) {
      if (cluster.workloads[i].name == name) return i;
      names.push_back(cluster.workloads[i].name);
    }
    row.fail("workload", fmt::format("found \"{}\", expected {}", name,
                                     names.empty() ? "a name of the cluster's \"workloads\"" : list_of(names)));
  }
  if (row.has("model")) {
    const MeasuredModel model{row.text("model"), row.text("batch_per_gpu")};
    if (!cluster.throughputs) cluster.throughputs = std::make_shared<const Throughputs>();
    if (!cluster.throughputs->has(model))
      row.fail("model", fmt::format("found \"{}\" with batch \"{}\", expected {}", model.first, model.second,
                                    list_of(cluster.throughputs->models())));
    return measured_workload_of(model.first, model.second, cluster);
  }
  if (!row.has("duration_s"))
    row.fail("arrival_s", "the row states no \"workload\", no \"model\" and no \"duration_s\"");
  return timed_workload_of(cluster);
}

ClusterJob job_of(const TraceRow& row, Cluster& cluster) {
  ClusterJob job;
  job.name = row.has("job") ? row.text("job") : fmt::format("line-{}", row.line());
  job.arrival_s = row.number("arrival_s", 0, kLongest);
  job.gpus = row.count("gpus");
  job.least = row.has("min_gpus") ? row.count("min_gpus") : job.gpus;
  job.most = row.has("max_gpus") ? row.count("max_gpus") : job.gpus;
  if (job.least > job.gpus || job.most < job.gpus)
    row.fail("gpus",
             fmt::format("found {}, which is not within the job's range {} to {}", job.gpus, job.least, job.most));
  if (row.has("priority")) job.priority = row.whole("priority", -kHighestPriority, kHighestPriority);
  if (row.has("deadline_s")) job.deadline_s = row.number("deadline_s", 1e-9, kLongest);
  const std::string owner = row.has("owner") ? row.text("owner") : row.text("virtual_cluster");
  job.owner = owner_of(owner.empty() ? "all" : owner, cluster);
  job.workload = workload_of(row, cluster);
  const char* steps = row.has("total_steps") ? "total_steps" : "steps";
  if (row.has(steps)) job.steps = row.number(steps, 1, 1e15);
  const ClusterWorkload& workload = cluster.workloads[job.workload];
  if (!workload.model.empty() && job.steps == 0) row.fail("model", "its number of steps is missing");
  if (!workload.scenario && workload.model.empty()) job.duration_s = row.number("duration_s", 1e-6, kLongest);
  return job;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Warns of columns that are not read. Throws at `at` for one whose name is likely to be a misspelling.
void warn_of_columns(const JsonNode& at, const CsvTable& table, Cluster& cluster) {
  static const std::vector<std::string> known = {
      "arrival_s", "gpus",  "workload", "model",    "batch_per_gpu", "duration_s", "steps",           "total_steps",
      "job",       "owner", "priority", "min_gpus", "max_gpus",      "deadline_s", "virtual_cluster", "after"};
  std::vector<std::string> others;
  for (const std::string& name : table.names()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const auto close = nearest(name, known); close && !table.has(*close))
      at.fail(fmt::format("{} has a column \"{}\"; did you mean \"{}\"?", table.file(), name, *close));
    others.push_back(name);
  }
  if (!others.empty())
    cluster.warnings.push_back(fmt::format("{}: columns that are not read: {}", table.file(), fmt::join(others, ", ")));
}

/// Throws at `at` if jobs wait for one another in a circle.
void check_cycles(const JsonNode& at, const Cluster& cluster) {
  std::vector<int> waits(cluster.jobs.size());
  std::vector<std::vector<std::size_t>> unlocks(cluster.jobs.size());
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < cluster.jobs.size(); ++i) {
    waits[i] = static_cast<int>(cluster.jobs[i].after.size());
    for (const std::size_t before : cluster.jobs[i].after) unlocks[before].push_back(i);
    if (waits[i] == 0) free.push_back(i);
  }
  std::size_t done = 0;
  for (; done < free.size(); ++done)
    for (const std::size_t next : unlocks[free[done]])
      if (--waits[next] == 0) free.push_back(next);
  if (done == cluster.jobs.size()) return;
  std::string circle;
  for (std::size_t i = 0; i < waits.size() && circle.size() < 200; ++i)
    if (waits[i] > 0) circle += (circle.empty() ? "" : ", ") + cluster.jobs[i].name;
  at.fail(fmt::format("jobs wait for one another in a circle, so that none can start: {}", circle));
}

}  // namespace

std::size_t owner_of(const std::string& name, Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.owners.size(); ++i)
    if (cluster.owners[i].name == name) return i;
  cluster.owners.push_back({name});
  return cluster.owners.size() - 1;
}

void warn_of_estimate(const MeasuredModel& model, Cluster& cluster) {
  if (!cluster.throughputs->is_measured(model))
    cluster.warnings.push_back(
        fmt::format("the speeds of {} with batch {} were not measured; they are estimated from "
                    "those with other batches",
                    model.first, model.second));
}

std::size_t measured_workload_of(const std::string& model, const std::string& batch, Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.workloads.size(); ++i)
    if (cluster.workloads[i].model == model && cluster.workloads[i].batch == batch) return i;
  cluster.workloads.push_back({batch.empty() ? model : model + " " + batch, nullptr, model, batch});
  warn_of_estimate({model, batch}, cluster);
  return cluster.workloads.size() - 1;
}

std::size_t timed_workload_of(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.workloads.size(); ++i)
    if (!cluster.workloads[i].scenario && cluster.workloads[i].model.empty()) return i;
  cluster.workloads.push_back({"stated duration", nullptr, "", ""});
  return cluster.workloads.size() - 1;
}

void resolve_after(const JsonNode& at, const std::vector<std::vector<std::string>>& names, Cluster& cluster) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < cluster.jobs.size(); ++i) numbers[cluster.jobs[i].name] = i;
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const std::string& name : names[i]) {
      const auto found = numbers.find(name);
      if (found == numbers.end())
        at.fail(fmt::format("the job {} waits for \"{}\", which is the name of no job", cluster.jobs[i].name, name));
      cluster.jobs[i].after.push_back(found->second);
    }
  check_cycles(at, cluster);
}

void read_job_trace(const JsonNode& at, const std::string& virtual_cluster, Cluster& cluster) {
  const CsvTable table = CsvTable::load(at.directory() / at.as_string());
  for (const char* column : {"arrival_s", "gpus"})
    if (!table.has(column)) at.fail(fmt::format("{} has no column \"{}\"", table.file(), column));
  if (!virtual_cluster.empty() && !table.has("virtual_cluster"))
    at.fail(fmt::format("{} has no column \"virtual_cluster\"", table.file()));
  warn_of_columns(at, table, cluster);
  std::vector<std::vector<std::string>> after;
  std::map<std::string, std::size_t> lines;  // by the name of the job
  for (const CsvTable::Row& cells : table.rows()) {
    const TraceRow row(table, cells);
    if (!virtual_cluster.empty() && row.text("virtual_cluster") != virtual_cluster) continue;
    ClusterJob job = job_of(row, cluster);
    if (!cluster.jobs.empty() && job.arrival_s < cluster.jobs.back().arrival_s)
      row.fail("arrival_s", fmt::format("found {:g} after {:g}: jobs must stand in the order of their arrival",
                                        job.arrival_s, cluster.jobs.back().arrival_s));
    if (const auto [first, is_new] = lines.emplace(job.name, row.line()); !is_new)
      row.fail(row.has("job") ? "job" : "arrival_s",
               fmt::format("found \"{}\", which is the name of the job in line {} too", job.name, first->second));
    cluster.jobs.push_back(std::move(job));
    after.push_back(words_of(row.text("after")));
  }
  if (cluster.jobs.empty())
    at.fail(virtual_cluster.empty()
                ? fmt::format("{} has no jobs", table.file())
                : fmt::format("{} has no jobs of the virtual cluster {}", table.file(), virtual_cluster));
  resolve_after(at, after, cluster);
}

}  // namespace ganymede::sim
