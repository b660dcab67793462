#pragma once
// The words of `ganymede train` while it trains: on a terminal a line of progress, after the first steps of a long
// training how long it will take here, and for a program that started this one its losses.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "cli/progress.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// How long a training takes, from its first steps. The first three are not counted: they allocate memory and choose
/// algorithms.
class TrainingEstimate {
 public:
  /// `grows`: later stages have larger images, so that the first steps give only a lower bound.
  TrainingEstimate(std::int64_t steps, bool grows) : steps_(steps), grows_(grows) {}

  /// The sentence for people once ten steps, or three seconds of them, are timed; empty before and after that, and if
  /// less than a minute is left. `now_s` are the seconds since the first step began.
  std::string after_step(std::int64_t done, double now_s);

 private:
  std::int64_t steps_;
  bool grows_, said_ = false;
  double begin_s_ = 0;  ///< when the third step was done
};

/// On a terminal a line with losses, rate and time left. With --progress-fd lines for the program that started this
/// one, such as "120 2000 steps\tdiscriminator=0.7\tgenerator=1.1".
class TrainingLine {
 public:
  /// The training does the steps after `first` up to `last`, each of `batch` images over all replicas. `shared` must
  /// outlive this.
  TrainingLine(std::int64_t first, std::int64_t last, int batch, bool grows, const Shared& shared);
  void show(const kernel::Progress& progress);

 private:
  void tell(const kernel::Progress& progress);
  std::string text(double seconds);

  const Shared& shared_;
  std::int64_t first_, last_;
  int batch_;
  TrainingEstimate estimate_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_{};  ///< before which nothing is told
  std::mutex mutex_;
  kernel::Progress progress_{};
  std::unique_ptr<ProgressLine> line_;  // last, because its thread uses the other members
};

}  // namespace ganymede::cli
