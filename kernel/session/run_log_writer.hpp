#pragma once
// The log of a training under way, a `ganymede.run-log/1`, which `watch` reads.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "kernel/quality/quality.hpp"
#include "kernel/train.hpp"

namespace ganymede::kernel {

/// Writes each line at once, so that a reader sees it and a kill loses nothing. Steps are logged once a second.
class RunLogWriter {
 public:
  /// The log of `trainer`, which will have done `steps` steps at the end. Without a file name, nothing is written.
  /// `append`: the training goes on, and so does its log. Throws ConfigError if the file cannot be opened. If it cannot
  /// be written later (a full disk), `remark` is told once and the training goes on without its log.
  RunLogWriter(const std::string& file, const Trainer& trainer, std::int64_t steps, bool append,
               std::function<void(const std::string&)> remark);

  void step(const Progress& progress);
  /// Calls `work` and logs how long it took.
  void pause(const char* what, std::int64_t step, const std::function<void()>& work);
  /// Calls `measure`, and logs how long it took and how good the generator is.
  void evaluation(std::int64_t step, const std::function<Quality()>& measure);
  /// `how` is "finished" or "stopped".
  void end(const char* how, std::int64_t step);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& line);

  std::string name_;
  std::function<void(const std::string&)> remark_;
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point next_{};  ///< before which no step is logged
};

}  // namespace ganymede::kernel
