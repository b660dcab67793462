#include "serve/upload_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "serve/command_run.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kMostTime{1};
constexpr const char* kFile = "upload.json";
constexpr int kNothingServes = 3;  // as cli/exit_codes.hpp has it

class TrialFolder {
 public:
  explicit TrialFolder(const fs::path& parent) : path_(parent / (std::string(kTrial) + "XXXXXX")) {
    std::string name = path_.string();
    if (::mkdtemp(name.data()) == nullptr) throw Failure(parent.string() + ": no folder can be made in it");
    path_ = name;
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  ~TrialFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void try_upload(const std::string& kind, const std::string& name, const std::string& text, const fs::path& folder) {
  static std::mutex one_at_a_time;  // and not each its memory
  const std::lock_guard lock(one_at_a_time);
  const TrialFolder trial(folder);
  write_file(trial.path() / kFile, text);
  constexpr double kMiB = 1U << 20U;  // 64 of them are the least that --max-memory takes
  const Bytes most{std::clamp(memory_budget().si / 4, 64 * kMiB, 512 * kMiB)};
  CommandRun run{{}, trial.path(), "output", "log"};
  if (kind == "trace")
    run.arguments = {"fits", kFile};
  else
    run.arguments = {"catalog", "--provider", kFile};
  run.arguments.insert(run.arguments.end(), {"--max-memory", fmt::format("{:.0f}B", most.si)});
  const CommandEnd end = run_command(run, StopSignal(), std::chrono::steady_clock::now() + kMostTime, {});
  const auto refuse = [&](const std::string& why) { throw ConfigError(fmt::format("{}: reading it {}", name, why)); };
  if (end.why == CommandEnd::Why::too_long) refuse("took more than a minute");
  if (end.code > 4) refuse(fmt::format("ended the process that did (signal {})", end.code - 128));
  if (end.code == kNothingServes)  // neither command refuses anything else so
    refuse(fmt::format("would take more than {} of memory", to_string(most)));
}

}  // namespace ganymede::serve
