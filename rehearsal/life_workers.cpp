#include "rehearsal/life_workers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

// The handler of a node's SIGTERM needs these.
const WakePipe* notice_pipe = nullptr;
std::uint64_t notice_node = 0;

void on_notice(int) {
  const int error = errno;
  notice_pipe->send({Wake::Kind::notice_heard, notice_node});
  errno = error;
}

}  // namespace

WakePipe::WakePipe() {
  if (::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Failure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
}

WakePipe::~WakePipe() {
  for (const int end : ends_) ::close(end);
}

void WakePipe::send(Wake wake) const {
  // So few bytes are written at once or not at all, and the pipe holds thousands.
  while (::write(ends_[1], &wake, sizeof wake) < 0 && errno == EINTR) {
  }
}

std::optional<Wake> WakePipe::take() const {
  Wake wake{};
  if (::read(ends_[0], &wake, sizeof wake) != static_cast<ssize_t>(sizeof wake)) return std::nullopt;
  return wake;
}

void WakePipe::wait(double seconds) const {
  if (seconds <= 0) return;
  pollfd polled{ends_[0], POLLIN, 0};
  const timespec timeout = timespec_of(seconds);
  ::ppoll(&polled, 1, &timeout, nullptr);
}

pid_t start_node(const WakePipe& pipe, std::uint64_t node, double ready_at) {
  // A notice that comes before the process can hear it waits until then.
  sigset_t notices, before;
  ::sigemptyset(&notices);
  ::sigaddset(&notices, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &notices, &before);
  const pid_t pid = start_process(0, [&] {
    notice_pipe = &pipe;
    notice_node = node;
    struct sigaction action {};
    action.sa_handler = on_notice;
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    sleep_until(ready_at);
    pipe.send({Wake::Kind::node_ready, node});
    while (true) ::pause();
  });
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

/// Calls `move` for each piece of a file, evenly until the moment `until`.
template <class Move>
void pace(std::size_t bytes, double until, const Move& move) {
  const double begin = machine_time();
  for (std::size_t from = 0; from < bytes; from += kPiece) {
    const std::size_t length = std::min(kPiece, bytes - from);
    if (move(from, length) != static_cast<ssize_t>(length))
      throw Failure(fmt::format("cannot use the checkpoint of the rehearsal: {}", std::strerror(errno)));
    sleep_until(begin + (until - begin) * static_cast<double>(from + length) / static_cast<double>(bytes));
  }
}

/// Returns once `holds` does; a worker looks often, because an order is a moment of the life.
template <class Condition>
void look_until(const Condition& holds) {
  constexpr timespec kLook{0, 100'000};
  while (!holds()) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kLook, nullptr);
}

}  // namespace

LifeBoard::LifeBoard(int ranks, std::size_t buckets, std::int64_t most_steps)
    : ranks_(ranks), buckets_(buckets), numbers_(numbers_of_step(buckets)), most_steps_(most_steps) {
  const std::size_t heads = sizeof(Head) + sizeof(Rank) * static_cast<std::size_t>(ranks);
  memory_.emplace(heads +
                  sizeof(double) * numbers_ * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(most_steps));
  std::byte* const bytes = memory_->data();
  head_ = new (bytes) Head;
  ranks_head_ = reinterpret_cast<Rank*>(bytes + sizeof(Head));
  for (int rank = 0; rank < ranks; ++rank) new (ranks_head_ + rank) Rank;
  rows_ = reinterpret_cast<double*>(bytes + heads);
}

// A worker that has read the number before finds that `begun` is not what it has seen, and reads again.
bool LifeBoard::set_last(std::int64_t last) {
  head_->last = last;
  return (head_->begun.fetch_add(std::uint64_t{1} << kSettings) & kStop) == 0;
}

std::optional<StepBegin> LifeBoard::begin(std::int64_t number) {
  constexpr std::uint64_t kStepMask = (std::uint64_t{1} << kSettings) - 1;
  std::uint64_t seen = head_->begun;
  while (true) {
    const auto latest = static_cast<std::int64_t>((seen & kStepMask) >> kFlags);
    // Nobody is two steps ahead, because every step waits for all ranks: the flag belongs to this step.
    if (latest >= number) return StepBegin{(seen & kCheckpoint) != 0};
    if ((seen & kStop) != 0) return std::nullopt;
    if (number > head_->last) {
      head_->begun.compare_exchange_strong(seen, seen | kStop);
      continue;
    }
    const std::int64_t due = head_->orders.due;
    const bool checkpoint = due >= 0 && number - 1 >= due;
    const std::uint64_t next =
        (seen & ~kStepMask) | (static_cast<std::uint64_t>(number) << kFlags) | (checkpoint ? kCheckpoint : 0);
    if (head_->begun.compare_exchange_strong(seen, next)) return StepBegin{checkpoint};
  }
}

double* LifeBoard::numbers_of(int rank, std::int64_t step) const {
  assert(step < most_steps_);
  return rows_ +
         (static_cast<std::size_t>(rank) * static_cast<std::size_t>(most_steps_) + static_cast<std::size_t>(step)) *
             numbers_;
}

void LifeBoard::finish(int rank, const PlayedStep& step) {
  std::vector<double> numbers;
  append_numbers(step, numbers);
  const std::int64_t done = rank_of(rank).finished;
  std::copy(numbers.begin(), numbers.end(), numbers_of(rank, done));
  rank_of(rank).finished = done + 1;
}

void LifeBoard::fail(int rank, const std::string& why) {
  char* const fault = rank_of(rank).fault;
  fault[why.copy(fault, sizeof(Rank::fault) - 1)] = '\0';
}

void LifeBoard::end_saving(std::int64_t after_step, double now) {
  const std::int64_t every = head_->orders.every;
  head_->orders.due = every > 0 ? after_step + every : -1;
  head_->saving_s = head_->saving_s + (now - head_->saving_since);
  head_->saved_after = after_step;
  head_->saving_since = 0;
  head_->saved = head_->saved + 1;
}

LifeBoard::Saved LifeBoard::saved() const {
  Saved out{.count = head_->saved};
  out.after_step = head_->saved_after;
  out.seconds = head_->saving_s;
  out.since = head_->saving_since;
  return out;
}

std::int64_t LifeBoard::finished() const {
  std::int64_t least = rank_of(0).finished;
  for (int rank = 1; rank < ranks_; ++rank) least = std::min<std::int64_t>(least, rank_of(rank).finished);
  return least;
}

std::vector<std::vector<PlayedStep>> LifeBoard::played(std::int64_t first, std::int64_t end) const {
  std::vector<std::vector<PlayedStep>> out;
  for (std::int64_t step = first; step < end; ++step) {
    out.emplace_back();
    for (int rank = 0; rank < ranks_; ++rank) out.back().push_back(step_of_numbers(numbers_of(rank, step), buckets_));
  }
  return out;
}

std::string LifeBoard::fault(int rank) const { return rank_of(rank).fault; }

LifeCheckpoint::LifeCheckpoint(double bytes)
    : words_(static_cast<std::size_t>(std::clamp(bytes, 64.0, double{kMostBytes})) / sizeof(std::uint64_t)),
      memory_(sizeof *complete_),
      complete_(new (memory_.data()) std::atomic<std::int64_t>(0)) {
  std::string name = (std::filesystem::temp_directory_path() / "ganymede-life-XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) throw Failure(fmt::format("cannot write a checkpoint to {}: {}", name, std::strerror(errno)));
  ::unlink(name.c_str());
}

LifeCheckpoint::~LifeCheckpoint() { ::close(file_); }

/// Numbers that differ by checkpoint, so that a wrong or torn one is seen.
std::vector<std::uint64_t> LifeCheckpoint::content(std::int64_t number) const {
  std::vector<std::uint64_t> out(words_);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15U + i;
  return out;
}

void LifeCheckpoint::write(double until) {
  const std::int64_t number = *complete_ + 1;
  const std::vector<std::uint64_t> words = content(number);
  const auto* const bytes = reinterpret_cast<const char*>(words.data());
  const std::size_t size = words.size() * sizeof words[0], place = static_cast<std::size_t>(number % 2) * size;
  pace(size, until, [&](std::size_t from, std::size_t length) {
    const ssize_t wrote = ::pwrite(file_, bytes + from, length, static_cast<off_t>(place + from));
    // The disk is given its work while the rest is still paced.
    if (from + length == size && ::fdatasync(file_) != 0) return ssize_t{-1};
    return wrote;
  });
  *complete_ = number;
}

void LifeCheckpoint::read(double until) const {
  const std::int64_t number = *complete_;
  std::vector<std::uint64_t> words(words_);
  auto* const bytes = reinterpret_cast<char*>(words.data());
  const std::size_t size = words.size() * sizeof words[0], place = static_cast<std::size_t>(number % 2) * size;
  pace(size, until, [&](std::size_t from, std::size_t length) {
    return ::pread(file_, bytes + from, length, static_cast<off_t>(place + from));
  });
  if (number == 0 || words != content(number))
    throw Failure(fmt::format("checkpoint {} of the rehearsal is not what was written", number));
}

Workers::Workers(const WorkersRequest& request, const WakePipe& pipe, LifeCheckpoint& checkpoint)
    : request_(request),
      board_(static_cast<int>(request.hosts.size()), request.steps->plan.schedules.size(), request.most_steps),
      wait_before_(sim::phases_that_wait(request.steps->plan.model, request.steps->plan.options.overlap)),
      connections_(request.hosts, request.spaces) {
  board_.orders().rate_bytes_per_s = request.shaping.rate.si;
  for (std::size_t rank = 0; rank < request_.hosts.size(); ++rank)
    pids_.push_back(start_process(
        request_.nodes[rank], [this, rank, &pipe, &checkpoint] { work(rank, pipe, checkpoint); },
        [this, rank](const std::string& why) { board_.fail(static_cast<int>(rank), why); }));
  // From here on a connection ends when one of its two workers does.
  for (std::size_t rank = 0; rank < request_.hosts.size(); ++rank) connections_.close_rank(rank);
}

Workers::~Workers() {
  for (const pid_t worker : pids_) kill_and_bury(worker, false);
}

std::string Workers::fault() const {
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    const std::optional<std::string> end = how_it_ended(pids_[rank]);
    if (!end || *end == "exit status 0") continue;
    const std::string why = board_.fault(static_cast<int>(rank));
    return fmt::format("rank {}: {}", rank, why.empty() ? *end : why);
  }
  return "";
}

void Workers::work(std::size_t rank, const WakePipe& pipe, LifeCheckpoint& checkpoint) {
  if (request_.spaces != nullptr) request_.spaces->enter(request_.hosts[rank]);
  SocketMessenger messenger(static_cast<int>(rank), connections_.take(rank), request_.shaping);
  Group group(messenger);
  StepPlayer player(request_.steps->plan, group, group.now());
  start(group, checkpoint);
  if (board_.is_last_ready()) pipe.send({Wake::Kind::workers_ready, number()});
  look_until([&] { return board_.orders().go.load(); });
  train(group, player, messenger, checkpoint);
  if (board_.is_last_ended()) pipe.send({Wake::Kind::workers_ended, number()});
}

void Workers::start(Group& group, LifeCheckpoint& checkpoint) const {
  group.sleep_until(request_.loading_from);
  if (request_.begins_at > request_.loading_from && group.is_first()) checkpoint.read(request_.begins_at);
  group.sleep_until(request_.begins_at);
  // Nobody begins before the checkpoint is read.
  if (request_.begins_at > request_.loading_from) group.barrier();
}

void Workers::train(Group& group, StepPlayer& player, SocketMessenger& messenger, LifeCheckpoint& checkpoint) {
  const int rank = group.rank();
  player.start_at(group.now());
  for (std::int64_t number = 1;; ++number) {
    const std::optional<StepBegin> begin = board_.begin(number);
    if (!begin) return;
    if (begin->checkpoint_first) {
      save(group, number - 1, checkpoint);
      player.start_at(group.now());
    }
    player.slow_down(board_.slow_factor(rank));
    if (request_.shaping.is_paced) messenger.set_rate(BytesPerSecond{board_.orders().rate_bytes_per_s});
    const auto& rows = request_.steps->rows;
    const auto row = (request_.first_row + static_cast<std::size_t>(number - 1)) % rows.size();
    board_.finish(rank, player.play(rows[row][static_cast<std::size_t>(rank)]));
  }
}

void Workers::save(Group& group, std::int64_t after_step, LifeCheckpoint& checkpoint) {
  const std::int64_t before = board_.saved().count;
  group.barrier();
  if (group.is_first()) {
    const double now = machine_time();
    board_.begin_saving(now);
    checkpoint.write(now + board_.orders().checkpoint_s);
    board_.end_saving(after_step, machine_time());
  }
  // Writing may take longer than a worker waits patiently for a message.
  look_until([&] { return board_.saved().count > before; });
}

}  // namespace ganymede::rehearsal
