#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>

#include "cli/terminal.hpp"

namespace ganymede::cli {
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

void write_progress(int descriptor, std::size_t done, std::size_t count, const std::string& what) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string line = fmt::format("{} {} {}\n", done, count, what);
  [[maybe_unused]] const auto written = ::write(descriptor, line.data(), line.size());
}

namespace {

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

}  // namespace ganymede::cli
