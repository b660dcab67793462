#include "plan/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "traces/run_pace.hpp"

namespace ganymede::plan {
namespace {

constexpr std::int64_t kMostLoggedSteps = std::int64_t{1} << 53;
/// Seconds of the year 9999: a larger number is no Unix time in seconds, but perhaps one in milliseconds.
constexpr double kLatestUnix = 253402300800.0;
/// Seconds by which a pause may be longer than the log, for clocks that are set while a run goes on.
constexpr double kClockSlack = 60;
/// A line of a log has a few hundred bytes; a file of another kind may have no line breaks at all.
constexpr std::size_t kLongestLine = 1 << 16;

/// The line's time. Where the clock was set back before it, the times so far are moved along, so that they are those of
/// the clock as it goes now; the time between the two lines is not known and counts as none.
double read_time(JsonObject& in, RunLog& log) {
  const double unix_s = in.required("unix_s").as_number(0, kLatestUnix);
  const double back = log.last_unix_s - unix_s;
  if (log.batch == 0 || back <= 0) return unix_s;
  log.begin_unix_s -= back;
  for (LoggedStep& step : log.steps) step.unix_s -= back;
  for (LoggedPause& pause : log.pauses) pause.unix_s -= back;
  log.last_unix_s = unix_s;
  return unix_s;
}

std::int64_t read_step(JsonObject& in, const RunLog& log) {
  const JsonNode step = in.required("step");
  const std::int64_t done = step.as_integer(0, kMostLoggedSteps);
  if (done < log.done())
    step.fail(fmt::format("the run goes backwards: found step {}, expected {} or more", done, log.done()));
  return done;
}

/// The first line, or the line with which a run goes on after it was stopped.
void read_header(JsonObject& in, RunLog& log) {
  check_schema(in, "ganymede.run-log/1");
  const auto text = [&](const char* key) {
    const auto found = in.optional(key);
    return found && !found->value().is_null() ? found->as_string() : std::string();
  };
  const std::string model = text("model");
  const std::string device = text("device");
  const JsonNode gpus = in.required("gpus"), batch = in.required("batch"), planned = in.required("steps");
  const auto first = in.optional("first_step");
  const std::int64_t first_step = first ? first->as_integer(0, kMostLoggedSteps) : 0;
  const double unix_s = read_time(in, log);
  if (log.batch > 0) {
    if (model != log.model)
      in.node().fail(
          fmt::format("the run goes on as \"{}\", it began as \"{}\": expected a log of one run", model, log.model));
    // Steps after the last checkpoint are done again.
    while (!log.steps.empty() && log.steps.back().step > first_step) log.steps.pop_back();
    while (!log.fids.empty() && log.fids.back().step > first_step) log.fids.pop_back();
    log.pauses.push_back({"interruption", first_step, unix_s - log.last_unix_s, unix_s});
    ++log.resumptions;
    log.end.clear();
  } else {
    log.begin_unix_s = unix_s;
    log.begin_step = first_step;
  }
  log.model = model;
  log.device = device;
  log.gpus = static_cast<int>(gpus.as_integer(1, 1 << 20));
  log.batch = batch.as_integer(1, 1 << 30);
  log.planned = planned.as_integer(1, kMostLoggedSteps);
  if (first_step > log.planned)
    planned.expected(fmt::format("at least the {} steps that are done already", first_step));
  log.steps.push_back({first_step, unix_s});
  log.last_unix_s = unix_s;
}

void read_quality(const JsonNode& node, std::int64_t step, RunLog& log) {
  JsonObject in(node);
  const double fid = in.required("fid").as_number(1e-9, 1e9);
  if (const auto reference = in.optional("reference")) {
    if (!log.fids.empty() && reference->as_string() != log.reference)
      reference->fail(fmt::format("found \"{}\" after \"{}\": FIDs against different references cannot be compared",
                                  reference->as_string(), log.reference));
    log.reference = reference->as_string();
  }
  in.optional("inception_score");  // for people
  in.finish();
  log.fids.push_back({step, fid});
}

/// What is left of a line in which a crash cut an object short: the header that a resumed run wrote behind it, or
/// nothing. A loss of power may leave zeros in the place of what was written. A line that neither explains stays as it
/// is, for its error.
std::string_view after_cut(std::string_view line) {
  if (line.starts_with('\0')) return line.substr(std::min(line.find_first_not_of('\0'), line.size()));
  if (!line.starts_with('{')) return line;
  const std::size_t next = line.find("{\"schema\"", 1);
  if (next != line.npos) return line.substr(next);
  return line.ends_with('}') ? line : std::string_view();
}

/// True for the first line of a run log, and for what a crash has left of one.
bool begins_as_header(std::string_view line) {
  constexpr std::string_view kBegin = R"({"schema":"ganymede.run-log/1")";
  std::string dense(line.substr(0, 80));
  std::erase(dense, ' ');  // Python writes some
  const std::string_view shown = std::string_view(dense).substr(0, kBegin.size());
  return !shown.empty() && kBegin.starts_with(shown);
}

/// The log of another program as the one of the planned training, whose steps have the plan's batch.
RunLog run_log_of(const traces::RunPace& pace, const PlannedTraining& planned, double written_unix_s) {
  RunLog log;
  log.gpus = planned.gpus;
  log.batch = planned.batch;
  const double unit = pace.counts_images ? 1 / static_cast<double>(planned.batch) : 1;
  const auto step_of = [&](double count) { return static_cast<std::int64_t>(std::llround(count * unit)); };
  const double begin = pace.begin_unix_s.value_or(written_unix_s - pace.points.back().seconds);
  for (const auto& point : pace.points)
    log.steps.push_back({step_of(point.count), begin + point.seconds, point.clock_set});
  log.begin_step = log.steps.front().step;
  log.begin_unix_s = log.steps.front().unix_s;
  log.last_unix_s = log.steps.back().unix_s;
  log.planned = std::max(log.done(),
                         static_cast<std::int64_t>(std::llround(planned.images / static_cast<double>(planned.batch))));
  for (const auto& pause : pace.pauses) {
    const std::int64_t step = step_of(pause.count);
    const auto at =
        std::find_if(log.steps.begin(), log.steps.end(), [&](const LoggedStep& logged) { return logged.step >= step; });
    if (at != log.steps.end()) log.pauses.push_back({"evaluation", step, pause.seconds, at->unix_s + pause.seconds});
  }
  for (const auto& fid : pace.fids) log.fids.push_back({step_of(fid.count), fid.fid});
  log.reference = pace.reference;
  log.cut_lines = static_cast<int>(pace.skipped);
  log.run = pace.run;
  if (log.done() >= log.planned) log.end = "finished";
  return log;
}

}  // namespace

void RunLogReader::add(std::string_view line) {
  if (const std::string_view rest = after_cut(line);
      rest.size() < line.size() && (log_.batch > 0 || line.starts_with('\0') || begins_as_header(line))) {
    ++log_.cut_lines;
    if (rest.empty()) return;
    line = rest;
  }
  const JsonNode node = JsonNode::parse(line, fmt::format("{}: line {}", file_.string(), number_));
  JsonObject in(node);
  if (in.optional("schema") || log_.batch == 0) return read_header(in, log_);
  const double before = log_.last_unix_s, unix_s = read_time(in, log_);
  if (!log_.end.empty())
    node.fail("a line after the run's end, expected a first line that goes on: do two runs write this log?");
  const std::int64_t step = read_step(in, log_);
  if (step > log_.planned)
    in.node().fail(fmt::format("found step {}, expected at most the {} that the first line plans", step, log_.planned));
  if (const auto pause = in.optional("pause")) {
    const double seconds = in.required("seconds").as_number(0, kLatestUnix);
    if (seconds > unix_s - log_.begin_unix_s + kClockSlack)
      in.node().fail(fmt::format("a pause of {:.0f} s within the {:.0f} s that the run has taken", seconds,
                                 unix_s - log_.begin_unix_s));
    log_.pauses.push_back({pause->as_string(), step, seconds, unix_s});
  } else if (const auto quality = in.optional("quality")) {
    read_quality(*quality, step, log_);
  } else if (const auto end = in.optional("end")) {
    log_.end = end->as_choice({"finished", "stopped"});
  } else {
    in.optional("losses");  // for people and for other programs
  }
  in.finish();
  log_.steps.push_back({step, unix_s, unix_s < before});
  log_.last_unix_s = unix_s;
}

bool RunLogReader::is_foreign() const {
  if (!planned_ || number_ > 0) return foreign_;
  std::ifstream in(file_, std::ios::binary);
  std::string line;
  while (line.find_first_not_of(" \t\r") == line.npos && std::getline(in, line)) {
  }
  const bool may_go_on = in.eof() && begins_as_header(line);  // "{" alone on a line is another program's document
  return !line.empty() && !may_go_on && line.find("ganymede.run-log/1") == line.npos;
}

int RunLogReader::read_foreign() {
  const std::string text = read_file(file_);
  if (text.size() == offset_) return 0;
  const auto pace = traces::read_run_pace(text, file_.string());
  if (!pace)
    throw ConfigError(
        fmt::format("{}: expected a ganymede.run-log/1, StyleGAN's stats.jsonl or log.txt, StudioGAN's log, JSON lines "
                    "of MMEngine or with a step and a time, the history of Weights & Biases, HuggingFace's "
                    "trainer_state.json, bars of tqdm or Keras, the loss_log.txt of CycleGAN, lines that begin with a "
                    "time and have a word such as \"step\" "
                    "before its number, an event file of TensorBoard, or a CSV with a column of steps or images and "
                    "one of time",
                    file_.string()));
  if (pace->points.empty() && pace->untimed > 0)
    throw ConfigError(
        fmt::format("{}: has no time yet: {} records have a step, and none says when it was. HuggingFace's "
                    "trainer_state.json has its \"train_runtime\" when the training has ended; until then expected "
                    "what the training prints, whose bars of tqdm have times",
                    file_.string(), pace->untimed));
  if (pace->points.empty()) throw ConfigError(file_.string() + ": no step yet");
  foreign_ = true;
  offset_ = text.size();
  const std::size_t before = log_.steps.size();
  const auto written = std::filesystem::last_write_time(file_);
  log_ = run_log_of(*pace, *planned_,
                    std::chrono::duration<double>(std::chrono::file_clock::to_sys(written).time_since_epoch()).count());
  return static_cast<int>(std::max<std::size_t>(1, log_.steps.size() - std::min(before, log_.steps.size())));
}

int RunLogReader::read() {
  // A device may never end, and of a pipe nothing could be read again.
  if (std::filesystem::exists(file_) && !std::filesystem::is_regular_file(file_))
    throw ConfigError(fmt::format("{}: is {}, expected a log that grows", file_.string(),
                                  std::filesystem::is_directory(file_) ? "a directory" : "no regular file"));
  std::ifstream in(file_, std::ios::binary);
  if (!in) (void)read_file(file_);  // which says why it cannot
  if (is_foreign()) return read_foreign();
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(in.tellg());
  if (size < offset_)
    throw ConfigError(
        fmt::format("{}: has become shorter: found {} bytes, {} were read before; another run writes to it?",
                    file_.string(), size, offset_));
  in.seekg(static_cast<std::streamoff>(offset_));
  int lines = 0;
  std::string line;
  for (char byte; in.get(byte);) {
    if (byte != '\n') {
      line += byte;
      if (line.size() > kLongestLine)
        throw ConfigError(fmt::format("{}: line {}: longer than {} bytes, expected lines of a ganymede.run-log/1",
                                      file_.string(), number_ + 1, kLongestLine));
      continue;
    }
    offset_ += line.size() + 1;
    ++number_;
    if (!line.empty()) {
      add(line);
      ++lines;
    }
    line.clear();
  }
  return lines;
}

}  // namespace ganymede::plan
