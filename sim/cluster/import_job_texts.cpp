#include "sim/cluster/import_job_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_parse.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "sim/cluster/recorded_jobs.hpp"

namespace ganymede::sim {
namespace {

/// The text of a string or a number; "" for anything else or if there is no such member.
std::string text_of(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const Json& value = object.at(key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : "";
}

/// A number, also as Slurm writes one that may be unset: {"set": true, "number": 60}.
double number_of(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return 0;
  const Json& value = object.at(key);
  return value.is_number() ? value.get<double>() : value.is_object() ? number_of(value, "number") : 0;
}

/// A job of a Philly log (msr-fiddle/philly-traces) has attempts, each with GPUs of its own. The job is taken to ask
/// for as many as the largest had, and to run as long as all.
RecordedJob philly_job(const Json& entry, const std::string& where) {
  RecordedJob job;
  job.name = text_of(entry, "jobid");
  job.owner = text_of(entry, "user");
  const auto submitted = moment_of(text_of(entry, "submitted_time"));
  if (!submitted) throw ConfigError(where + ": expected \"submitted_time\" such as 2017-10-09 07:01:55");
  job.submitted = *submitted;
  if (!entry.contains("attempts")) return job;
  for (const Json& attempt : entry.at("attempts").elements()) {
    std::int64_t gpus = 0;
    if (attempt.is_object() && attempt.contains("detail"))
      for (const Json& machine : attempt.at("detail").elements())
        if (machine.is_object() && machine.contains("gpus"))
          gpus += static_cast<std::int64_t>(machine.at("gpus").size());
    job.gpus = std::max(job.gpus, gpus);
    const auto start = moment_of(text_of(attempt, "start_time")), end = moment_of(text_of(attempt, "end_time"));
    if (start && end && *end > *start) job.seconds += *end - *start;
  }
  return job;
}

std::string priority_of(const Json& entry) {
  if (!entry.contains("priority")) return "";
  return entry.at("priority").is_object() ? text_of(entry.at("priority"), "number") : text_of(entry, "priority");
}

/// The tasks of "1-10", "0-8:2" or "1,3,5-7", behind which "%2" may say how many run at once. Throws ConfigError for
/// anything else.
std::vector<std::int64_t> tasks_of(std::string_view text, const std::string& where) {
  constexpr std::size_t kMost = 1'000'000;
  std::string_view rest = text.substr(0, text.find('%'));
  std::vector<std::int64_t> tasks;
  while (!rest.empty()) {
    std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t colon = part.find(':');
    const auto step = colon == part.npos ? std::optional<std::int64_t>(1) : integer(part.substr(colon + 1));
    part = part.substr(0, colon);
    const std::size_t dash = part.find('-');
    const auto first = integer(part.substr(0, dash));
    const auto last = dash == part.npos ? first : integer(part.substr(dash + 1));
    constexpr std::int64_t kLargest = std::int64_t{1} << 32;
    if (!first || !last || !step || *first < 0 || *last < *first || *last > kLargest || *step < 1)
      throw ConfigError(fmt::format("{}: found the array tasks \"{}\", expected such as 1-10 or 1,3,5{}", where, text,
                                    text.find("...") == text.npos ? "" : ": SLURM_BITSTR_LEN=0 prints all of them"));
    for (std::int64_t task = *first; task <= *last; task += *step) {
      if (tasks.size() >= kMost)
        throw ConfigError(fmt::format("{}: found the array tasks \"{}\", expected at most a million", where, text));
      tasks.push_back(task);
    }
  }
  return tasks;
}

/// A job, or those of a pending array, which has one entry for all of its tasks: "7_1", and so on.
std::vector<RecordedJob> jobs_of_array(const Json& entry, const RecordedJob& job, const std::string& where) {
  const std::string tasks = text_of(entry, "array_task_string");
  if (tasks.empty()) return {job};
  const double array = number_of(entry, "array_job_id");
  const std::string id = array > 0 ? fmt::format("{:.0f}", array) : job.name;
  std::vector<RecordedJob> jobs;
  for (const std::int64_t task : tasks_of(tasks, where)) {
    jobs.push_back(job);
    jobs.back().name = fmt::format("{}_{}", id, task);
  }
  return jobs;
}

/// A job of what `squeue --json` prints: of one that goes on or waits, its limit is how long it runs.
RecordedJob queued_job(const Json& entry) {
  RecordedJob job;
  job.name = text_of(entry, "job_id");
  job.owner = text_of(entry, "user_name");
  job.priority = priority_of(entry);
  job.submitted = number_of(entry, "submit_time");
  const double start = number_of(entry, "start_time"), end = number_of(entry, "end_time");
  job.seconds = start > 0 && end > start ? end - start : 60 * number_of(entry, "time_limit");
  job.lacks_limit = job.seconds <= 0;
  for (const char* tres : {"tres_alloc_str", "tres_req_str"})
    if (job.gpus == 0) job.gpus = gpus_of(text_of(entry, tres));
  return job;
}

/// A job of what `sacct --json` prints (Slurm's slurmdb of data_parser).
RecordedJob slurm_job(const Json& entry, const std::string& where) {
  if (!entry.contains("time") && entry.contains("submit_time")) return queued_job(entry);
  RecordedJob job;
  job.name = text_of(entry, "job_id");
  job.owner = text_of(entry, "user");
  job.priority = priority_of(entry);
  if (!entry.contains("time")) throw ConfigError(where + ": expected \"time\" with \"submission\" and \"elapsed\"");
  job.submitted = number_of(entry.at("time"), "submission");
  job.seconds = number_of(entry.at("time"), "elapsed");
  if (!entry.contains("tres") || !entry.at("tres").is_object()) return job;
  const Json& tres = entry.at("tres");
  for (const char* list : {"allocated", "requested"}) {
    if (job.gpus > 0 || !tres.contains(list)) continue;
    double all = 0, typed = 0;  // clusters account for GPUs, for those of each type, or for both
    for (const Json& part : tres.at(list).elements()) {
      if (text_of(part, "type") != "gres") continue;
      const std::string name = text_of(part, "name");
      (name == "gpu" ? all : typed) += name == "gpu" || name.starts_with("gpu:") ? number_of(part, "count") : 0;
    }
    job.gpus = static_cast<std::int64_t>(std::min(all > 0 ? all : typed, 1e9));
  }
  return job;
}

/// How long a profile of Batsim waits, with the profiles that it is composed of.
double batsim_delay(const Json& profiles, const std::string& name, int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth || !profiles.is_object() || !profiles.contains(name)) return 0;
  const Json& profile = profiles.at(name);
  if (text_of(profile, "type") != "composed" || !profile.contains("seq")) return number_of(profile, "delay");
  double sum = 0;
  for (const Json& part : profile.at("seq").elements())
    if (part.is_string()) sum += batsim_delay(profiles, part.get<std::string>(), depth + 1);
  return sum * (profile.contains("repeat") ? number_of(profile, "repeat") : 1);
}

/// A job of a workload of Batsim: how long a job runs is what its profile waits; a profile that computes says only how
/// much, so that the time for which it asked is taken.
RecordedJob batsim_job(const Json& entry, const Json& profiles, const std::string& where) {
  RecordedJob job;
  job.name = text_of(entry, "id");
  job.submitted = number_of(entry, "subtime");
  job.gpus = static_cast<std::int64_t>(std::min(number_of(entry, "res"), 1e9));
  const std::string profile = text_of(entry, "profile");
  job.seconds = batsim_delay(profiles, profile, 0);
  if (job.seconds <= 0) job.seconds = number_of(entry, "walltime");
  if (job.seconds <= 0)
    throw ConfigError(
        fmt::format("{}: the profile \"{}\" says how much a job computes, but neither it nor the job's "
                    "walltime how long",
                    where, profile));
  return job;
}

/// The numbers of a line, or nothing if it has anything else.
std::vector<double> numbers_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> numbers;
  for (std::string word; words >> word;) {
    const auto number = duration_of(word);
    if (!number || word.find(':') != word.npos) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

constexpr std::size_t kSwfFields = 18;

}  // namespace

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

ImportedJobs import_job_json(std::string_view text, const std::string& name) {
  const Json all = JsonNode::parse(text, name).value();
  RecordedJobs jobs(name);
  const auto where = [&](std::size_t i) { return fmt::format("{}: job {}", name, i); };
  const bool has_list = all.is_object() && all.contains("jobs") && all.at("jobs").is_array();
  const Json& list = has_list ? all.at("jobs") : all;
  const Json* first = list.is_array() && list.size() > 0 ? &list.elements().front() : nullptr;
  const bool philly = first != nullptr && first->is_object() && first->contains("submitted_time");
  const bool slurm = has_list && first != nullptr && first->is_object() && first->contains("job_id");
  const bool batsim = has_list && first != nullptr && first->is_object() && first->contains("subtime");
  if (!philly && !slurm && !batsim)
    throw ConfigError(
        fmt::format("{}: is JSON, but neither Philly's log of jobs, nor what `sacct --json` or `squeue --json` prints, "
                    "nor a workload of Batsim",
                    name));
  const Json profiles = batsim && all.contains("profiles") ? all.at("profiles") : Json();
  bool at_once = false;  // an array says how many of its tasks may run at once
  for (std::size_t i = 0; i < list.size(); ++i)
    jobs.add_all([&]() -> std::vector<RecordedJob> {
      const Json& entry = list.elements()[i];
      if (!entry.is_object()) throw ConfigError(where(i) + ": expected an object");
      const RecordedJob job = philly  ? philly_job(entry, where(i))
                              : slurm ? slurm_job(entry, where(i))
                                      : batsim_job(entry, profiles, where(i));
      if (!slurm || entry.contains("time")) return {job};
      at_once = at_once || text_of(entry, "array_task_string").find('%') != std::string::npos;
      return jobs_of_array(entry, job, where(i));
    });
  ImportedJobs out = jobs.written();
  if (at_once) out.remarks.emplace_back("how many tasks of an array may run at once (\"%2\") is not kept");
  if (batsim) out.remarks.emplace_back("a resource of Batsim counts as a GPU");
  if (slurm && !list.elements().empty() && list.elements().front().contains("submit_time"))
    out.remarks.emplace_back("a queue: jobs that go on or wait are taken to run until their time limit");
  return out;
}

bool is_swf(std::string_view text) {
  std::istringstream lines{std::string(text.substr(0, 1 << 16))};
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(';') && line.find_first_not_of(" \t\r") != line.npos)
      return numbers_of(line).size() == kSwfFields;
  return false;
}

ImportedJobs import_swf(std::string_view text, const std::string& name) {
  std::istringstream lines{std::string(text)};
  RecordedJobs jobs(name);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with(';') || line.find_first_not_of(" \t\r") == line.npos) continue;
    jobs.add([&] {
      const std::vector<double> fields = numbers_of(line);
      if (fields.size() != kSwfFields)
        throw ConfigError(fmt::format("{}: line {}: expected {} numbers", name, number, kSwfFields));
      RecordedJob job;
      job.name = fmt::format("{}", fields[0]);
      job.submitted = fields[1];
      job.seconds = fields[3];
      job.gpus = static_cast<std::int64_t>(std::min(fields[4] > 0 ? fields[4] : fields[7], 1e9));
      if (fields[11] >= 0) job.owner = fmt::format("user-{}", fields[11]);
      return job;
    });
  }
  ImportedJobs out = jobs.written();
  out.remarks.emplace_back("the standard workload format has no GPUs: a processor counts as one");
  return out;
}

ImportedJobs import_gavel_tabs(std::string_view text, const std::string& name) {
  ImportedJobs out{"job,arrival_s,gpus,model,batch_per_gpu,total_steps\n", {}};
  std::istringstream lines{std::string(text)};
  std::vector<std::pair<double, std::string>> rows;
  std::size_t number = 0, unreadable = 0;
  std::string why;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    std::vector<std::string> cells(1);
    for (const char c : line)
      if (c == '\t')
        cells.emplace_back();
      else if (c != '\r')
        cells.back() += c;
    const std::size_t last = cells.size() - 1;
    const bool early = cells.size() == 7;  // of the first version: arrival, then GPUs
    const auto arrival = cells.size() < 7 ? std::nullopt : moment_of(cells[early ? last - 1 : last]);
    // Shockwave's traces have a word more behind the GPUs: how the batch size changes.
    const std::size_t mode = cells.size() > 10 && !integer(cells[last - 3]) ? 1 : 0;
    const auto gpus = cells.size() < 7 ? std::nullopt : integer(cells[early ? last : last - 3 - mode]);
    const auto steps = cells.size() < 7 ? std::nullopt : integer(cells[early ? last - 2 : last - 4 - mode]);
    if (!arrival || !gpus || !steps || *gpus < 0 || *gpus > kMostImportedGpus || *steps < 1) {
      if (unreadable++ == 0)
        why = fmt::format("{}: line {}: expected a job's type, command, steps, arrival and GPUs, as Gavel writes them",
                          name, number);
      continue;
    }
    if (*gpus == 0) continue;  // as Gavel itself does
    const std::string& type = cells[0];
    const std::size_t bracket = type.find(" (batch size ");
    const std::string batch = bracket == std::string::npos ? "" : type.substr(bracket + 13, type.size() - bracket - 14);
    rows.emplace_back(*arrival, fmt::format("line-{},{},{},{},{},{}\n", number, *arrival, *gpus,
                                            csv_cell(type.substr(0, bracket)), csv_cell(batch), *steps));
  }
  if (rows.empty()) throw ConfigError(why.empty() ? name + ": has no jobs" : why);
  out.remarks.push_back(counted(rows.size(), "job"));
  out.csv += in_order(std::move(rows));
  if (unreadable > 0) out.remarks.push_back(fmt::format("{} that cannot be read; the first: {}", unreadable, why));
  return out;
}

std::string cells_as_csv(std::string_view text, char separator) {
  std::string out;
  std::string cell;
  const auto end_cell = [&](char end) {
    std::string doubled;
    for (const char c : cell) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += "\"" + doubled + "\"" + end;
    cell.clear();
  };
  for (const char c : text) {
    if (c == '\r') continue;
    if (c == separator || c == '\n')
      end_cell(c == separator ? ',' : '\n');
    else
      cell += c;
  }
  if (!cell.empty()) end_cell('\n');
  return out;
}

/// The spans of a line of dashes; none for another line.
std::vector<std::pair<std::size_t, std::size_t>> dashes(std::string_view line) {
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  if (line.find_first_not_of("- \r") != line.npos || !line.starts_with("--")) return spans;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find('-', at);
    if (begin == line.npos) break;
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    spans.emplace_back(begin, end - begin);
    at = end;
  }
  return spans;
}

std::string_view second_line(std::string_view text) {
  const std::size_t begin = text.find('\n');
  if (begin == text.npos) return "";
  const std::size_t end = text.find('\n', begin + 1);
  return text.substr(begin + 1, end == text.npos ? end : end - begin - 1);
}

bool is_fixed_width(std::string_view text) { return !dashes(second_line(text)).empty(); }

std::string fixed_width_as_csv(std::string_view text) {
  const auto spans = dashes(second_line(text));
  std::istringstream lines{std::string(text)};
  std::string out;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++number == 2) {
      out += "\n";  // keeps the numbers of the lines
      continue;
    }
    for (std::size_t i = 0; i < spans.size(); ++i) {
      std::string cell = spans[i].first < line.size() ? line.substr(spans[i].first, spans[i].second) : "";
      cell.erase(0, std::min(cell.find_first_not_of(' '), cell.size()));
      cell.erase(cell.find_last_not_of(" \r") + 1);
      out += (i == 0 ? "" : ",") + csv_cell(cell);
    }
    out += "\n";
  }
  return out;
}

}  // namespace ganymede::sim
