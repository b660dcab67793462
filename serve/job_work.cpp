#include "serve/job_work.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/plans.hpp"
#include "report/runs.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Bytes of a result of which a table is made, at most: a parsed result takes many times its size in memory.
constexpr std::uintmax_t kMaxTableBytes = 32 << 20;
constexpr std::size_t kMaxMessageBytes = 4000;

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

}  // namespace ganymede::serve
