#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "common/units.hpp"

namespace ganymede::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::string_view kGreen = "\033[1;32m", kRed = "\033[1;31m", kPlain = "\033[0m";

std::string_view color_of(std::string_view line) {
  if (line.starts_with("-> MISSED")) return kRed;
  return line.starts_with("-> ") || line.find("<- ") != std::string_view::npos ? kGreen : "";
}

}  // namespace

std::string highlighted(const Shared& shared, const std::string& text) {
  const std::string safe = printable(text, "\n");
  if (!shared.color || !shared.output.empty()) return safe;
  std::istringstream lines(safe);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const std::string_view color = color_of(line);
    out += color.empty() ? line + "\n" : std::string(color) + line + std::string(kPlain) + "\n";
  }
  return out;
}

std::optional<std::size_t> terminal_columns(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  const std::string_view said = variable("COLUMNS");
  if (const auto columns = parse_number<std::size_t>(said).value_or(0); columns > 0) return columns;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::nullopt;
}

std::size_t result_width(const Shared& shared) {
  return shared.output.empty() ? terminal_columns(STDOUT_FILENO).value_or(report::kAnyWidth) : report::kAnyWidth;
}

std::size_t remark_width() { return terminal_columns(STDERR_FILENO).value_or(report::kAnyWidth); }

bool may_color() { return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && ::isatty(STDOUT_FILENO) != 0; }

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSilent = std::chrono::seconds(2);  // shorter work shows nothing
constexpr auto kRedraw = std::chrono::milliseconds(250);
constexpr std::size_t kColumns = 80;  // width of a terminal that does not tell it

/// The text on the terminal's last line. It is global because a process has one stderr.
struct Drawn {
  std::mutex mutex;
  std::size_t columns = 0;
};

Drawn& drawn() {
  static Drawn state;
  return state;
}

/// Overwrites the line. Precondition: the mutex is held.
std::string erasure(Drawn& state) {
  const std::size_t columns = std::exchange(state.columns, 0);
  return columns == 0 ? "" : "\r" + std::string(columns, ' ') + "\r";
}

/// The beginning of the text, at most so many columns.
std::string truncate(const std::string& text, std::size_t columns) {
  std::size_t bytes = 0, seen = 0;
  for (; bytes < text.size(); ++bytes)
    if ((static_cast<unsigned char>(text[bytes]) & 0xC0U) != 0x80U && seen++ == columns) break;
  return text.substr(0, bytes);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Counts the pieces that are done, and draws a bar.
class Bar {
 public:
  Bar(std::size_t count, std::string what) : count_(count), what_(std::move(what)) {
    line_ = std::make_unique<ProgressLine>([this](double now_s, std::size_t columns) { return text(now_s, columns); });
  }

  void done(std::size_t pieces) {
    {
      const std::lock_guard lock(mutex_);
      // Pieces that an earlier run has done took no time of this run.
      if (done_ == 0 && pieces > 0) before_ = pieces - 1;
      done_ = pieces;
      last_s_ = seconds_since(begin_);
    }
    if (pieces >= count_) line_.reset();
  }

 private:
  std::string text(double now_s, std::size_t columns) {
    const std::lock_guard lock(mutex_);
    const double left_s = done_ > before_ ? time_left(done_ - before_, count_ - before_, last_s_, now_s) : -1;
    return bar_text(done_, count_, what_, now_s, left_s, columns);
  }

  std::size_t count_, done_ = 0, before_ = 0;
  double last_s_ = 0;
  std::string what_;
  Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::unique_ptr<ProgressLine> line_;  // declared last, because its thread uses the other members
};

}  // namespace

void say(const std::string& text) {
  Drawn& state = drawn();
  const std::lock_guard lock(state.mutex);
  std::fputs((erasure(state) + text).c_str(), stderr);
}

ProgressLine::ProgressLine(Text text)
    : text_(std::move(text)), thread_([this](const std::stop_token& stop) { draw(stop); }) {}

ProgressLine::~ProgressLine() {
  thread_.request_stop();
  thread_.join();
  say("");
}

void ProgressLine::draw(const std::stop_token& stop) {
  const auto begin = Clock::now();
  Clock::duration pause = kSilent;
  std::string before;
  for (std::unique_lock lock(mutex_); !woken_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); });) {
    pause = kRedraw;
    // The last column stays free, because a character there begins a new line on some terminals.
    const std::size_t columns = terminal_columns(STDERR_FILENO).value_or(kColumns) - 1;
    const std::string text = truncate(text_(seconds_since(begin), columns), columns);
    Drawn& state = drawn();
    const std::lock_guard other(state.mutex);
    const std::size_t now = report::columns_of(text);
    if (text == before && state.columns == now) continue;
    const std::string rest(state.columns - std::min(state.columns, now), ' ');
    std::fputs(fmt::format("\r{}{}", text, rest).c_str(), stderr);
    state.columns = now;
    before = text;
  }
}

bool shows_progress(const Shared& shared) { return !shared.quiet && ::isatty(STDERR_FILENO) != 0; }

std::unique_ptr<ProgressLine> show_elapsed(const Shared& shared, const std::string& what, double expected_s) {
  if (!shows_progress(shared)) return nullptr;
  return std::make_unique<ProgressLine>([what, expected_s](double now_s, std::size_t columns) {
    const double left_s = expected_s - now_s;
    const std::string times = fmt::format(": {}{}", duration_text(now_s),
                                          left_s >= 1 ? fmt::format(", about {} left", duration_text(left_s)) : "");
    return truncate(what, columns - std::min(columns, times.size())) + times;
  });
}

void add_progress_fd(Parser app, Shared& shared) {
  app.add_option("--progress-fd", shared.progress_fd).check(integer_between(3, 1 << 16)).hidden();
}

namespace {

/// Writes a line "done count what" to --progress-fd. It is no error if the reader is gone, or if it is slow and the
/// descriptor does not block. `what` may hold measurements, each as a tab and "name=value".
void write_progress(int descriptor, std::size_t done, std::size_t count, const std::string& what) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string line = fmt::format("{} {} {}\n", done, count, what);
  [[maybe_unused]] const auto written = ::write(descriptor, line.data(), line.size());
}

std::function<void(std::size_t)> progress_lines(int descriptor, std::size_t count, const std::string& what) {
  write_progress(descriptor, 0, count, what);
  return [=](std::size_t done) { write_progress(descriptor, done, count, what); };
}

}  // namespace

std::function<void(std::size_t)> progress_bar(const Shared& shared, std::size_t count, const std::string& what) {
  if (shared.progress_fd >= 0) return progress_lines(shared.progress_fd, count, what);
  if (!shows_progress(shared) || count == 0) return {};
  return [bar = std::make_shared<Bar>(count, what)](std::size_t done) { bar->done(done); };
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3.6e9));
  if (whole < 100) return fmt::format("{} s", whole);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

double time_left(std::size_t done, std::size_t count, double last_s, double now_s) {
  if (done == 0 || done >= count) return 0;
  const auto pieces = static_cast<double>(done), left = static_cast<double>(count - done);
  return std::max({0.0, last_s / pieces * left - (now_s - last_s), now_s / (pieces + 1) * (left - 1)});
}

std::string bar_text(std::size_t done, std::size_t count, const std::string& what, double elapsed_s, double left_s,
                     std::size_t columns) {
  constexpr std::size_t kWidest = 30, kNarrowest = 5;
  const std::string words = fmt::format("{}/{} {}  {}{}", done, count, what, duration_text(elapsed_s),
                                        left_s < 1 ? "" : fmt::format(", {} left", duration_text(left_s)));
  const std::size_t frame = std::string("[] ").size();
  if (words.size() + frame + kNarrowest > columns) return truncate(words, columns);
  const std::size_t width = std::min(kWidest, columns - words.size() - frame);
  const std::size_t filled = width * std::min(done, count) / count;
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, ' '), words);
}

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

TrainingLine::TrainingLine(std::int64_t first, std::int64_t last, int batch, bool grows, kernel::LossNames names,
                           const Shared& shared)
    : shared_(shared),
      first_(first),
      last_(last),
      batch_(batch),
      names_(names),
      estimate_(last - first, grows),
      progress_{first, {}} {
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
  return fmt::format("step {}/{}  {}{}  {} {:.4f}  {} {:.4f}  {:.0f} images/s", done, steps, duration_text(seconds),
                     rate > 0 ? fmt::format(", {} left", duration_text(left / rate)) : "", names_.discriminator,
                     progress_.losses.discriminator, names_.generator, progress_.losses.generator, rate * batch_);
}

}  // namespace ganymede::cli
