#include "kernel/session/run_log_writer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "common/errors.hpp"
#include "common/json_value.hpp"

namespace ganymede::kernel {
namespace {

using Line = OrderedJson;
using Steady = std::chrono::steady_clock;

/// Unix time in seconds, to the millisecond.
double unix_s() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count()) / 1000;
}

bool ends_within_a_line(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return in.seekg(-1, std::ios::end) && in.get() != '\n';
}

}  // namespace

RunLogWriter::RunLogWriter(const std::string& file, const Trainer& trainer, std::int64_t steps, bool append,
                           std::function<void(const std::string&)> remark)
    : name_(file), remark_(std::move(remark)) {
  if (file.empty()) return;
  file_.reset(std::fopen(file.c_str(), append ? "ae" : "we"));
  if (!file_) throw ConfigError(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
  // A run that was killed may have left half a line, which the first one of this run must not continue.
  if (append && ends_within_a_line(file)) std::fputc('\n', file_.get());
  write(Line{{"schema", "ganymede.run-log/1"},
             {"model", trainer.options().model},
             {"device", trainer.backend().info.device},
             {"gpus", trainer.shard().ranks},
             {"batch", trainer.global_batch()},
             {"steps", steps},
             {"first_step", trainer.steps_done()},
             {"unix_s", unix_s()}}
            .dump());
}

void RunLogWriter::step(const Progress& progress) {
  const auto now = Steady::now();
  if (!file_ || now < next_) return;
  next_ = now + std::chrono::seconds(1);
  write(Line{{"step", progress.step},
             {"unix_s", unix_s()},
             {"losses", {{"discriminator", progress.losses.discriminator}, {"generator", progress.losses.generator}}}}
            .dump());
}

void RunLogWriter::pause(const char* what, std::int64_t step, const std::function<void()>& work) {
  const auto begin = Steady::now();
  work();
  if (!file_) return;
  const double seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  write(Line{{"pause", what}, {"seconds", seconds}, {"step", step}, {"unix_s", unix_s()}}.dump());
}

void RunLogWriter::evaluation(std::int64_t step, const std::function<Quality()>& measure) {
  Quality measured;
  pause("evaluation", step, [&] { measured = measure(); });
  if (!file_) return;
  // Both the features and the number of images change what a figure compares with.
  write(Line{{"quality",
              {{"fid", measured.fid},
               {"inception_score", measured.inception_score},
               {"reference", fmt::format("{} {}", measured.features, measured.images)}}},
             {"step", step},
             {"unix_s", unix_s()}}
            .dump());
}

void RunLogWriter::end(const char* how, std::int64_t step) {
  if (file_) write(Line{{"end", how}, {"step", step}, {"unix_s", unix_s()}}.dump());
}

void RunLogWriter::write(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), file_.get()) >= 0 && std::fflush(file_.get()) == 0) return;
  const std::string reason = std::strerror(errno);
  file_.reset();
  remark_(fmt::format("{}: cannot be written: {}; the training goes on without its log", name_, reason));
}

}  // namespace ganymede::kernel
