#include "serve/job_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/storage.hpp"
#include "documents/forms.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Bytes of a result of which a table is made, at most: a parsed result takes many times its size in memory.
constexpr std::uintmax_t kMaxTableBytes = 32 << 20;
constexpr std::size_t kMaxMessageBytes = 4000;

constexpr const char* kJobSchema = "ganymede.serve-job/1";

/// The last "ganymede: MESSAGE" of the log; without one, what the exit code says.
std::string message_in(const fs::path& log, int code) {
  std::string text;
  try {
    text = read_file(log);
  } catch (const ConfigError&) {
  }
  if (text.size() > kMaxMessageBytes) text.erase(0, text.size() - kMaxMessageBytes);
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kName = "ganymede: ";
  const std::size_t at = text.rfind("\n" + std::string(kName));
  if (at != std::string::npos)
    text.erase(0, at + 1 + kName.size());
  else if (text.starts_with(kName))
    text.erase(0, kName.size());
  if (code > 128) return fmt::format("ended by signal {}{}{}", code - 128, text.empty() ? "" : ": ", text);
  return text.empty() ? fmt::format("ended with exit code {}", code) : text;
}

/// Writes the table that the command would print to table.txt.
void write_table(const fs::path& folder) {
  const fs::path file = folder / "result.json";
  std::error_code ignored;
  if (fs::file_size(file, ignored) > kMaxTableBytes)
    throw Failure("the result is too large; `ganymede export csv` makes one of it");
  const auto result = Json::parse(read_file(file));
  write_file(folder / "table.txt",
             result.at("schema") == "ganymede.plan/1" ? report::plan_text(result) : report::sweep_text(result));
}

/// Removes the temporary files that a killed program may have left.
void remove_unfinished(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> unfinished;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored))
    if (it->path().filename().string().find(".tmp-") != std::string::npos) unfinished.push_back(it->path());
  for (const fs::path& file : unfinished) fs::remove(file, ignored);
}

class Work {
 public:
  Work(JobRecord& record, const fs::path& folder, const StopSignal& stop, Seconds limit, const RunHooks& hooks)
      : record_(record),
        folder_(folder),
        stop_(stop),
        limit_(limit),
        hooks_(hooks),
        until_(Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * limit.si))) {}

  void run(const std::vector<JobCommand>& commands) {
    for (const JobCommand& command : commands) {
      if (!command.without.empty() && fs::exists(folder_ / kPrediction)) continue;  // made before, by the same job
      const auto end = execute({command.arguments, folder_, command.output, command.log, command.progress});
      if (!end) return;
      if (command.without.empty()) return finish(*end);
      if (end->code != 0 && end->code != 3) {
        note(fmt::format("no {}: {}", command.without, message_in(folder_ / command.log, end->code)));
      } else if (fs::exists(folder_ / kPrediction)) {
        write_file(folder_ / "clouds.json", clouds_json(folder_));
      }
    }
  }

 private:
  void finish(const CommandEnd& end) {
    const bool generates = record_.kind == JobKind::generate;
    record_.exit_code = end.code;
    if (end.code != 0) record_.message = message_in(folder_ / "log.txt", end.code);
    if (generates && end.code == 0) fs::rename(folder_ / "output.txt", folder_ / "result.json");
    const bool result = fs::exists(folder_ / "result.json");
    // Exit code 3: nothing meets the goals of the plan; the result holds what comes near.
    const bool good = end.code == 0 || (end.code == 3 && result && record_.kind == JobKind::plan);
    record_.state = good ? JobState::done : JobState::failed;
    if (result && (record_.kind == JobKind::compare || record_.kind == JobKind::plan)) show_result();
  }

  void note(const std::string& what) { record_.note += (record_.note.empty() ? "" : "; ") + what; }

  /// Returns none if the run was stopped, which the record then says.
  std::optional<CommandEnd> execute(const CommandRun& run) {
    const CommandEnd end = run_command(run, stop_, until_, hooks_);
    until_ += end.held;
    record_.peak_memory_bytes = std::max(record_.peak_memory_bytes, end.peak_memory_bytes);
    if (end.why == CommandEnd::Why::exited) return end;
    const bool late = end.why == CommandEnd::Why::too_long;
    record_.state = late ? JobState::failed : JobState::cancelled;
    record_.message = late ? fmt::format("stopped after {}, the limit of a job (--limit)", to_string(limit_)) : "";
    return std::nullopt;
  }

  void show_result() {
    try {
      write_table(folder_);
    } catch (const std::exception& error) {
      note(fmt::format("no table: {}", error.what()));
    }
    const JobRecord before = record_;
    const auto end = execute({{"report", "result.json", "-o", "report.html"}, folder_, "output.txt", "report-log.txt"});
    record_ = before;  // without its page the result is still valid
    if (end && end->code == 0) return;
    note("no report page: " + (end ? message_in(folder_ / "report-log.txt", end->code) : "it was stopped"));
  }

  JobRecord& record_;
  const fs::path& folder_;
  const StopSignal& stop_;
  Seconds limit_;
  const RunHooks& hooks_;
  Clock::time_point until_;
};

}  // namespace

void do_job(JobRecord& record, const std::vector<JobCommand>& commands, const fs::path& folder, const StopSignal& stop,
            Seconds limit, const RunHooks& hooks) {
  try {
    Work(record, folder, stop, limit, hooks).run(commands);
  } catch (const std::exception& error) {
    record.state = JobState::failed;
    record.message = error.what();
  }
  std::error_code ignored;
  fs::remove(folder / "output.txt", ignored);
  remove_unfinished(folder);
}

const std::vector<std::string>& state_names() {
  static const std::vector<std::string> names = {"queued", "running", "done", "failed", "cancelled", "interrupted"};
  return names;
}

std::string_view to_string(JobState state) { return state_names()[static_cast<std::size_t>(state)]; }

// A job as it is kept on disk.
void describe(documents::Walk& walk, JobRecord& record) {
  walk.constant("schema", kJobSchema);
  walk.one_of("kind", record.kind, kind_names(), documents::kRequired);
  walk.member("title", record.title, documents::kRequired);
  walk.member("name", record.name);
  walk.one_of("state", record.state, state_names(), documents::kRequired);
  walk.member("created", record.created, documents::kRequired);
  walk.member("seconds", record.seconds, {.low = 0, .high = 1e12, .required = true});
  walk.member_if_any("exit_code", record.exit_code, {.low = 0, .high = 255});
  walk.member("message", record.message, documents::kRequired);
  walk.member("note", record.note, documents::kRequired);
  walk.member("peak_memory_bytes", record.peak_memory_bytes, documents::kAmount);
}

namespace {

constexpr const char* kRecord = "job.json";

constexpr int kLastId = 999'999'999;  ///< the addresses of jobs have nine digits at most

/// The id of a job's folder of that name; 0 if it is not one.
int id_of(const std::string& name) {
  int id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  return error == std::errc{} && end == name.data() + name.size() && id > 0 && id <= kLastId &&
                 name == std::to_string(id)
             ? id
             : 0;
}

JobRecord read_record(const fs::path& file, int id) {
  if (fs::exists(file) && !fs::is_regular_file(file))  // a pipe might never be read
    throw ConfigError(file.string() + ": is no regular file, expected the record of a job");
  const JsonNode root = JsonNode::load(file);
  JsonObject head(root);
  check_schema(head, kJobSchema);
  JobRecord record;
  record.id = id;
  documents::read(root, documents::described(record));
  return record;
}

void make_folder(const fs::path& folder) {
  if (const std::error_code error = storage::make_folders(folder))
    throw ConfigError(fmt::format("--data: {}: {}", folder.string(), error.message()));
}

/// Makes a folder that only the user of this process may use, or takes an existing one as it is. ConfigError for a
/// folder of another user, or one to which others may write: they could replace jobs.
void make_own_folder(const fs::path& folder) {
  std::error_code unknown;
  const bool is_new = !fs::exists(folder, unknown);
  make_folder(folder);
  struct stat info {};
  if ((is_new && ::chmod(folder.c_str(), 0700) != 0) || ::stat(folder.c_str(), &info) != 0)
    throw ConfigError(fmt::format("--data: {}: {}", folder.string(), std::strerror(errno)));
  if (info.st_uid != ::geteuid())
    throw ConfigError(fmt::format(
        "--data: {}: found a folder of user {}, expected one of user {}, who runs the server; choose another",
        folder.string(), info.st_uid, ::geteuid()));
  if ((info.st_mode & 022) != 0)
    throw ConfigError(fmt::format(
        "--data: {0}: found a folder to which others may write ({1:04o}), who could replace jobs; choose another{2}",
        folder.string(), info.st_mode & 07777U,
        // A folder that others share, as /tmp is, would be closed to them.
        (info.st_mode & S_ISVTX) != 0 ? fmt::format(", for example {}", (folder / "ganymede").string())
                                      : fmt::format(", or \"chmod go-w {}\"", folder.string())));
}

}  // namespace

std::span<const JobFile> job_files() {
  static constexpr JobFile kFiles[] = {{kInputFile, "application/json"},
                                       {"result.json", "application/json"},
                                       {"report.html", "text/html; charset=utf-8"},
                                       {"table.txt", "text/plain; charset=utf-8"},
                                       {"images.png", "image/png"},
                                       {"samples.png", "image/png"},
                                       {"losses.csv", "text/csv; charset=utf-8"},
                                       {"clouds.json", "application/json"},
                                       {"prediction.json", "application/json"},
                                       {"step-trace.json", "application/json"},
                                       {"log.txt", "text/plain; charset=utf-8"}};
  return kFiles;
}

std::string picture_file(std::int64_t step) { return fmt::format("samples-{:06}.png", step); }

JobStore::JobStore(fs::path data) : data_(std::move(data)) {
  for (const fs::path& folder : {data_, data_ / "jobs", checkpoints(), uploads()}) make_own_folder(folder);
  const fs::path file = data_ / "lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) throw ConfigError(fmt::format("--data: {}: {}", file.string(), std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(lock_);
  throw ConfigError(fmt::format("--data: {}: another ganymede serve uses it; choose another folder", data_.string()));
}

JobStore::~JobStore() { ::close(lock_); }

fs::path JobStore::folder(int id) const { return data_ / "jobs" / std::to_string(id); }

std::vector<JobRecord> JobStore::load(std::vector<std::string>& remarks) {
  std::vector<JobRecord> records;
  std::error_code error;
  fs::directory_iterator entry(data_ / "jobs", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const int id = id_of(entry->path().filename().string());
    if (id == 0) continue;
    last_ = std::max(last_, id);
    try {
      JobRecord record = read_record(entry->path() / kRecord, id);
      if (record.state == JobState::queued || record.state == JobState::running) {
        record.state = JobState::interrupted;
        record.message = "the server ended before the job did";
        save_or_say(record, remarks);
      }
      records.push_back(std::move(record));
    } catch (const std::exception& wrong) {
      remarks.push_back(fmt::format("job {} is left out: {}", id, wrong.what()));
    }
  }
  if (error) throw ConfigError(fmt::format("--data: {}: {}", (data_ / "jobs").string(), error.message()));
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return records;
}

void JobStore::save_or_say(const JobRecord& record, std::vector<std::string>& remarks) const {
  try {
    save(record);
  } catch (const std::exception& error) {  // a full disk, for example; the jobs are shown nevertheless
    remarks.emplace_back(error.what());
  }
}

int JobStore::make() {
  if (last_ >= kLastId) throw Failure(fmt::format("{} has no number left for another job", data_.string()));
  make_folder(folder(last_ + 1));
  return ++last_;
}

void JobStore::remove(int id) const {
  std::error_code error;
  fs::remove_all(folder(id), error);
  if (error) throw Failure(fmt::format("{}: {}", folder(id).string(), error.message()));
}

void JobStore::save(const JobRecord& record) const {
  // The output of a program need not be valid UTF-8.
  write_file(folder(record.id) / kRecord, documents::written(documents::described(record)).dump_replacing(2) + "\n");
}

}  // namespace ganymede::serve
