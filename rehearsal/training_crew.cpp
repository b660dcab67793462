#include "rehearsal/training_crew.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

using TrainingLine = Json;

std::string text_of_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// All processes below one, itself included.
void add_descendants(pid_t pid, std::vector<pid_t>& out) {
  out.push_back(pid);
  std::istringstream children(text_of_file(fmt::format("/proc/{0}/task/{0}/children", pid)));
  for (pid_t child = 0; children >> child;) add_descendants(child, out);
}

/// The rank of a process by the variables that launchers set; none for the launcher itself.
std::optional<int> rank_of_process(pid_t pid) {
  const std::string environment = '\0' + text_of_file(fmt::format("/proc/{}/environ", pid));
  for (const char* variable : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID="}) {
    const std::string name = '\0' + std::string(variable);
    if (const std::size_t at = environment.find(name); at != std::string::npos)
      return std::atoi(environment.c_str() + at + name.size());
  }
  return std::nullopt;
}

/// The descriptor of a file that is written anew, or appended to.
void redirect(const std::filesystem::path& file, int to) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (opened < 0 || ::dup2(opened, to) < 0) ::_exit(127);
}

}  // namespace

TrainingCrew::TrainingCrew(const std::vector<std::string>& command, Files files) : files_(std::move(files)) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(files_.log, none);
  if (!none) read_until_ = size;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  launcher_ = ::fork();
  if (launcher_ < 0) throw Failure(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (launcher_ > 0) return;
  ::setpgid(0, 0);  // a terminal's interrupt reaches only the process that leads
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  redirect("/dev/null", STDIN_FILENO);
  redirect(files_.report, STDOUT_FILENO);
  redirect(files_.errors, STDERR_FILENO);
  ::execvp(words[0], words.data());
  const std::string why = fmt::format("{}: {}\n", words[0], std::strerror(errno));
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(127);
}

TrainingCrew::~TrainingCrew() {
  if (ended()) return;
  std::vector<pid_t> all;
  add_descendants(launcher_, all);
  for (const pid_t pid : all) ::kill(pid, SIGKILL);
  while (::waitpid(launcher_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

const TrainingLog& TrainingCrew::log() {
  std::ifstream in(files_.log, std::ios::binary);
  if (!in.seekg(static_cast<std::streamoff>(read_until_))) return log_;
  std::ostringstream more;
  more << in.rdbuf();
  const std::string text = more.str();
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; from = end + 1, end = text.find('\n', from)) {
    const TrainingLine line = TrainingLine::parse_or_null(std::string_view(text).substr(from, end - from));
    if (!line.is_object() || !line.contains("unix_s")) continue;
    const auto at = line["unix_s"].get<double>();
    if (line.contains("schema")) {
      log_.begun = true;
      log_.first = log_.step = log_.saved = line["first_step"].get<std::int64_t>();
      begun_at_ = at;
    } else if (line.contains("pause")) {
      paused_s_ += line["seconds"].get<double>();
      if (line["pause"] == "checkpoint") {
        log_.saved = line["step"].get<std::int64_t>();
        log_.saving_s += line["seconds"].get<double>();
        ++log_.checkpoints;
      }
    } else if (line.contains("end") || line.contains("losses")) {
      log_.step = line["step"].get<std::int64_t>();
      log_.trained_s = std::max(0.0, at - begun_at_ - paused_s_);
      if (line.contains("end")) log_.end = line["end"];
    }
  }
  read_until_ += from;
  return log_;
}

std::optional<int> TrainingCrew::ended() {
  if (ended_) return ended_;
  int status = 0;
  if (::waitpid(launcher_, &status, WNOHANG) != launcher_) return std::nullopt;
  ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended_;
}

std::map<int, pid_t> TrainingCrew::ranks() const {
  std::vector<pid_t> all;
  add_descendants(launcher_, all);
  std::map<int, pid_t> out;
  // A rank may have processes of its own, which come after it and have inherited its variables.
  for (const pid_t pid : all)
    if (const std::optional<int> rank = rank_of_process(pid)) out.try_emplace(*rank, pid);
  return out;
}

void TrainingCrew::ask_to_stop() {
  if (ended()) return;
  const std::map<int, pid_t> all = ranks();
  if (const auto first = all.find(0); first != all.end()) ::kill(first->second, SIGTERM);
}

void TrainingCrew::kill_rank(int rank) {
  if (ended()) return;
  const std::map<int, pid_t> all = ranks();
  if (const auto found = all.find(rank); found != all.end()) ::kill(found->second, SIGKILL);
}

std::optional<int> TrainingCrew::killed_rank() const {
  const std::string said = errors();
  const std::string before = "process rank ";
  if (said.find("exited on signal") == std::string::npos) return std::nullopt;
  const std::size_t at = said.find(before);
  if (at == std::string::npos) return std::nullopt;
  return std::atoi(said.c_str() + at + before.size());
}

std::string TrainingCrew::errors() const { return text_of_file(files_.errors); }

}  // namespace ganymede::rehearsal
