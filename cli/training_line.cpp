#include "cli/training_line.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace ganymede::cli {
namespace {

constexpr std::int64_t kUncounted = 3, kTimed = 10;  // steps
constexpr double kTimedSeconds = 3, kLong = 60;
constexpr auto kTellInterval = std::chrono::milliseconds(100);

}  // namespace

std::string TrainingEstimate::after_step(std::int64_t done, double now_s) {
  if (done == kUncounted) begin_s_ = now_s;
  const std::int64_t timed = done - kUncounted;
  if (said_ || timed < 1 || (timed < kTimed && now_s - begin_s_ < kTimedSeconds)) return "";
  said_ = true;
  const double step_s = (now_s - begin_s_) / static_cast<double>(timed);
  const double left_s = step_s * static_cast<double>(steps_ - done);
  if (left_s < kLong) return "";
  return fmt::format("{} steps take {} {} here ({} a step, by the first {}){}", steps_, grows_ ? "more than" : "about",
                     to_string(Seconds{left_s + now_s}), to_string(Seconds{step_s}), done,
                     grows_ ? "; steps get longer as the images grow" : "");
}

TrainingLine::TrainingLine(std::int64_t first, std::int64_t last, int batch, bool grows, const Shared& shared)
    : shared_(shared), first_(first), last_(last), batch_(batch), estimate_(last - first, grows), progress_{first, {}} {
  if (shared.progress_fd < 0 && shows_progress(shared))
    line_ = std::make_unique<ProgressLine>([this](double seconds, std::size_t) { return text(seconds); });
}

void TrainingLine::show(const kernel::Progress& progress) {
  if (shared_.progress_fd >= 0) return tell(progress);
  const double now_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (const std::string said = estimate_.after_step(progress.step - first_, now_s); !said.empty())
    remark(shared_, said);
  if (!line_) return;
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}

void TrainingLine::tell(const kernel::Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ && progress.step != last_) return;
  next_ = now + kTellInterval;
  write_progress(
      shared_.progress_fd, static_cast<std::size_t>(progress.step), static_cast<std::size_t>(last_),
      fmt::format("steps\tdiscriminator={}\tgenerator={}", progress.losses.discriminator, progress.losses.generator));
}

std::string TrainingLine::text(double seconds) {
  const std::lock_guard lock(mutex_);
  const std::int64_t done = progress_.step - first_, steps = last_ - first_;
  const double rate = static_cast<double>(done) / seconds;
  const auto left = static_cast<double>(steps - done);
  return fmt::format("step {}/{}  {}{}  discriminator {:.4f}  generator {:.4f}  {:.0f} images/s", done, steps,
                     duration_text(seconds), rate > 0 ? fmt::format(", {} left", duration_text(left / rate)) : "",
                     progress_.losses.discriminator, progress_.losses.generator, rate * batch_);
}

}  // namespace ganymede::cli
