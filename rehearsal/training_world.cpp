#include "rehearsal/training_world.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_network.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/run/run_configuration.hpp"

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
  launcher_ = start_process(0, [&] {  // a terminal's interrupt reaches only the process that leads
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    redirect("/dev/null", STDIN_FILENO);
    redirect(files_.report, STDOUT_FILENO);
    redirect(files_.errors, STDERR_FILENO);
    ::execvp(words[0], words.data());
    const std::string why = fmt::format("{}: {}\n", words[0], std::strerror(errno));
    (void)!::write(STDERR_FILENO, why.data(), why.size());
    ::_exit(127);
  });
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

namespace {

constexpr double kGlance = 10e-3;     // seconds between two looks at the log
constexpr double kStopBefore = 2;     // real seconds before a node goes at which the training is stopped
constexpr double kStopsWithin = 120;  // real seconds for a step, a checkpoint and the end of all processes
constexpr int kLeastImages = 2;       // of a process, as batch norm needs a variance

}  // namespace

int processes_for(int nodes, int batch) {
  for (int processes = nodes; processes > 1; --processes)
    if (batch % processes == 0 && batch / processes >= kLeastImages) return processes;
  return 1;
}

TrainingWorld::TrainingWorld(const ElasticPlan& plan) : plan_(plan), begin_(machine_time()) {}

sim::Nanoseconds TrainingWorld::now() const {
  return sim::to_nanoseconds(Seconds{(machine_time() - begin_) / plan_.scale});
}

bool TrainingWorld::takes(const sim::RunState& state, const sim::ScheduledEvent& event) {
  const auto before = [&] {
    early_.emplace(begin_ + sim::to_seconds(event.at).si * plan_.scale - kStopBefore, event);
    return true;
  };
  if (std::holds_alternative<sim::SegmentCompleted>(event.event)) {
    segment_ = event.phase;
    return true;
  }
  if (std::holds_alternative<sim::PauseEnded>(event.event)) {
    // Stopping the training has written the checkpoint already.
    if (state.phase == sim::RunPhase::saving) happened_.push_back(event);
    pause_ = state.phase == sim::RunPhase::saving ? 0 : event.phase;
    return true;
  }
  if (const auto* gone = std::get_if<sim::NodeReclaimed>(&event.event))
    return state.fleet[gone->node].warned ? before() : false;
  return std::holds_alternative<sim::FinalCheckpointDue>(event.event) ? before() : false;
}

std::optional<sim::ScheduledEvent> TrainingWorld::next(sim::SimulationQueue& queue) {
  while (true) {
    if (EndSignals::asked()) {
      if (crew_) stop_crew();
      throw ElasticInterrupted{log_.step};
    }
    look();
    const auto happens = [&](sim::ScheduledEvent event) {
      event.at = std::max(event.at, now());
      return event;
    };
    if (!happened_.empty()) {
      sim::ScheduledEvent event = happened_.front();
      happened_.pop_front();
      event.at = 0;
      return happens(event);
    }
    if (!early_.empty() && early_.begin()->first <= machine_time()) {
      sim::ScheduledEvent event = early_.begin()->second;
      early_.erase(early_.begin());
      const auto* gone = std::get_if<sim::NodeReclaimed>(&event.event);
      if (gone != nullptr && crew_ && std::count(members_.begin(), members_.end(), gone->node) > 0) stop_crew();
      event.at = 0;
      return happens(event);
    }
    if (!queue.empty() && queue.next_at() <= now()) return happens(queue.pop());
    if (queue.empty() && early_.empty() && !crew_) return std::nullopt;
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  }
}

/// Finds out what the processes have done since the last look.
void TrainingWorld::look() {
  if (!crew_ || ended_) return;
  const std::optional<int> status = crew_->ended();
  log_ = crew_->log();
  if (!up_ && log_.begun) {
    up_ = true;
    starts_.back().from = log_.first;
    if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
  }
  if (!status) return;
  ended_ = true;
  ElasticStart& start = starts_.back();
  start.to = log_.end.empty() ? log_.saved : log_.step;
  start.end = log_.end;
  if (log_.end == "finished" && *status == 0) {
    finished_ = true;
    if (segment_ != 0) happened_.push_back({0, sim::SegmentCompleted{}, segment_});
    return;
  }
  if (stopping_) return;
  std::optional<int> rank = crew_->killed_rank();
  if (!rank && *status > 128) rank = start.processes - 1;  // a launcher that does not say which
  if (!rank) throw Failure("the training has failed: " + crew_->errors());
  start.end = fmt::format("rank {} was lost", *rank);
  const auto lost = static_cast<std::size_t>(std::clamp<int>(*rank, 0, static_cast<int>(members_.size()) - 1));
  happened_.push_back({0, sim::NodeCrashed{members_[lost]}});
}

void TrainingWorld::wait_for_end() {
  const double begin = machine_time();
  for (look(); !ended_; look()) {
    if (machine_time() - begin > kStopsWithin)
      throw Failure(fmt::format("the training did not end within {:.0f} s", kStopsWithin));
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  }
}

void TrainingWorld::stop_crew() {
  if (ended_) return;
  stopping_ = true;
  // Processes that are not connected yet have no step to end, and the signal would end them at once.
  const double begin = machine_time();
  for (look(); !up_ && !ended_ && machine_time() - begin < kStopsWithin; look())
    ::usleep(static_cast<useconds_t>(kGlance * 1e6));
  crew_->ask_to_stop();
  wait_for_end();
}

sim::Nanoseconds TrainingWorld::stop_training() {
  if (crew_) stop_crew();
  return now();
}

void TrainingWorld::measure(sim::RunState& state) {
  look();
  const sim::Segment& segment = state.training.segment();
  sim::MeasuredSegment measured;
  const double base = state.training.steps();
  const bool whole = ended_ && (log_.end == "stopped" || log_.end == "finished");  // it wrote a checkpoint at the end
  const auto step = static_cast<double>(std::max(log_.step, log_.saved));
  const double saved = whole ? step : static_cast<double>(log_.saved);
  measured.progress.steps = std::max(0.0, step - base);
  measured.progress.checkpoints = log_.checkpoints - checkpoints_before_ + (whole ? 1 : 0);
  if (saved <= base) measured.progress.checkpoints = 0;
  if (measured.progress.checkpoints > 0) measured.durable_steps = saved - base;
  sim::StepDistribution& steps = distributions_.emplace_back(*segment.steps);
  steps.images = plan_.batch;
  if (log_.step > log_.first) {
    const double mean = log_.trained_s / static_cast<double>(log_.step - log_.first) / plan_.scale;
    steps.mean = steps.low = steps.high = Seconds{std::max(1e-9, mean)};
    steps.half_width = steps.own_variance = 0;
    for (std::size_t p = 0; p < steps.pools.size(); ++p) {
      sim::PoolStep& pool = steps.pools[p];
      pool.compute = Seconds{mean * segment.configuration.nodes[p]};
      pool.exposed = pool.straggler = pool.stall = pool.lost = Seconds{0};
    }
  }
  const double writing_s = log_.checkpoints > 0 ? log_.saving_s / static_cast<double>(log_.checkpoints) : 0;
  state.training.measure(measured, steps, writing_s / plan_.scale * sim::kNanosecondsPerSecond);
}

void TrainingWorld::follow(const sim::RunContext& context, const sim::RunState& state) {
  if (state.phase_number == followed_ && !state.finished) return;
  followed_ = state.phase_number;
  const bool trains = state.phase == sim::RunPhase::training && !state.finished;
  if (!trains) segment_ = 0;
  checkpoints_before_ = log_.checkpoints;
  std::vector<std::size_t> members;
  for (const std::size_t node : state.fleet.alive())
    if (state.fleet[node].member) members.push_back(node);
  const bool goes_on = trains && crew_ && !stopping_ && members == members_;
  if (crew_ && !goes_on) end_crew(state);
  if (state.finished || state.phase == sim::RunPhase::idle) {
    pause_ = 0;
    return;
  }
  if (state.phase == sim::RunPhase::starting || (trains && !crew_)) {
    members_ = members;
    start_crew(context, state);
  }
  if (trains && finished_) happened_.push_back({0, sim::SegmentCompleted{}, segment_});
}

/// Ends the processes of a crew that does not go on: one of them is lost with its node, or all have been stopped.
void TrainingWorld::end_crew(const sim::RunState& state) {
  if (!ended_) {
    const auto lost =
        std::find_if(members_.begin(), members_.end(), [&](std::size_t node) { return !state.fleet[node].held(); });
    if (lost == members_.end()) {
      stop_crew();
    } else {
      const int rank = std::min(static_cast<int>(lost - members_.begin()), starts_.back().processes - 1);
      stopping_ = true;
      const double begin = machine_time();
      // A process that has just been forked is not known as a rank yet.
      for (look(); !ended_ && machine_time() - begin < kStopsWithin; look()) {
        crew_->kill_rank(rank);
        ::usleep(static_cast<useconds_t>(kGlance * 1e6));
      }
      starts_.back().end = fmt::format("rank {} was lost", rank);
    }
  }
  crew_.reset();
  up_ = ended_ = stopping_ = false;
}

void TrainingWorld::start_crew(const sim::RunContext& context, const sim::RunState& state) {
  const auto nodes = static_cast<int>(members_.size());
  const int processes = processes_for(nodes, plan_.batch);
  log_ = {};
  checkpoints_before_ = 0;
  if (finished_) {  // the last step was done when the training was to be stopped: there is nothing to start
    if (pause_ != 0) happened_.push_back({0, sim::PauseEnded{}, std::exchange(pause_, 0)});
    return;
  }
  starts_.push_back({sim::to_seconds(now()).si, nodes, processes});
  // The time between checkpoints holds as many steps as the last start had in it; before any, as were predicted.
  sim::StepDistribution steps = context.steps_of(sim::configuration_of(context, state));
  steps.images = plan_.batch;
  if (!distributions_.empty()) steps.mean = distributions_.back().mean;
  const double every = sim::steps_between_checkpoints(context, state, steps);
  crew_ = std::make_unique<TrainingCrew>(plan_.command(processes, std::llround(every)), plan_.files);
}

}  // namespace ganymede::rehearsal
