#include "kernel/parallel/mpi/mpi_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "kernel/parallel/mpi/mpi_calls.hpp"

namespace ganymede::kernel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kQuestion = 1, kAnswer = 2;  // tags of messages without content
constexpr auto kLook = std::chrono::milliseconds(500);
/// Time in which a process that lives answers, also one that has had no processor for a while.
constexpr auto kAnswerTime = std::chrono::seconds(10);
constexpr std::size_t kHostBytes = 64;
constexpr std::size_t kMostNamed = 8;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

MpiWatch::MpiWatch(std::chrono::seconds patience) : patience_(patience) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &line_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_rank(line_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(line_, &ranks_), "MPI_Comm_size");
  std::array<char, kHostBytes> mine{};
  ::gethostname(mine.data(), mine.size() - 1);
  std::vector<char> all(kHostBytes * static_cast<std::size_t>(ranks_));
  check_mpi(MPI_Allgather(mine.data(), kHostBytes, MPI_CHAR, all.data(), kHostBytes, MPI_CHAR, line_), "MPI_Allgather");
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks_); ++r) hosts_.emplace_back(all.data() + r * kHostBytes);
  answered_.resize(static_cast<std::size_t>(ranks_));
  thread_ = std::thread([this] { work(); });
}

MpiWatch::~MpiWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

MpiWatch::Waiting::Waiting(MpiWatch& watch, Caller caller, const char* what)
    : since_(watch.places_[static_cast<std::size_t>(caller)].since_ns) {
  watch.places_[static_cast<std::size_t>(caller)].what = what;
  since_ = now_ns();
}
MpiWatch::Waiting::~Waiting() { since_ = 0; }

void MpiWatch::work() {
  std::unique_lock lock(mutex_);
  while (!woken_.wait_for(lock, kLook, [this] { return stop_; })) {
    answer_questions();
    for (Place& place : places_) {
      const std::int64_t since = place.since_ns;
      const double waited_s = static_cast<double>(now_ns() - since) * 1e-9;
      if (since == 0 || waited_s < static_cast<double>(patience_.count())) continue;
      ask_everyone(place.what, waited_s);
      // Everyone lives: they are asked again after the same time.
      std::int64_t unchanged = since;
      place.since_ns.compare_exchange_strong(unchanged, now_ns());
    }
  }
}

/// Answers the questions that have arrived, and notes the answers.
void MpiWatch::answer_questions() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, line_, &there, &status) != MPI_SUCCESS || there == 0) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, line_, MPI_STATUS_IGNORE);
    if (status.MPI_TAG == kQuestion)
      MPI_Send(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kAnswer, line_);
    else
      answered_[static_cast<std::size_t>(status.MPI_SOURCE)] = 1;
  }
}

/// Asks all other processes whether they live, and ends the training if some do not answer.
void MpiWatch::ask_everyone(const char* what, double waited_s) {
  std::fill(answered_.begin(), answered_.end(), char{0});
  answered_[static_cast<std::size_t>(rank_)] = 1;
  for (int other = 0; other < ranks_; ++other) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (other == rank_ || MPI_Isend(nullptr, 0, MPI_BYTE, other, kQuestion, line_, &request) != MPI_SUCCESS) continue;
    MPI_Request_free(&request);
  }
  const auto all_answered = [this] {
    return std::all_of(answered_.begin(), answered_.end(), [](char yes) { return yes != 0; });
  };
  for (const auto end = Clock::now() + kAnswerTime; !all_answered() && Clock::now() < end;) {
    answer_questions();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (all_answered()) return;
  std::string silent;
  std::size_t count = 0;
  for (std::size_t r = 0; r < answered_.size(); ++r)
    if (answered_[r] == 0 && count++ < kMostNamed)
      silent += fmt::format("{}{} on {}", silent.empty() ? "" : ", ", r, hosts_[r]);
  if (count > kMostNamed) silent += fmt::format(" and {} more", count - kMostNamed);
  std::fputs(
      fmt::format("ganymede: rank {} on {} has waited {:.0f} s for {}: no answer from rank {}; is it stopped, or "
                  "its machine or network gone? The training ends\n",
                  rank_, hosts_[static_cast<std::size_t>(rank_)], waited_s, what, silent)
          .c_str(),
      stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

std::chrono::seconds MpiWatch::stated_patience() {
  constexpr int kDefault = 300, kMost = 1'000'000;
  const char* stated = std::getenv("GANYMEDE_MPI_PATIENCE");
  if (stated == nullptr) return std::chrono::seconds(kDefault);
  const std::string_view text = stated;
  const int seconds = parse_number<int>(text).value_or(0);
  if (seconds < 1 || seconds > kMost)
    throw ConfigError(fmt::format("GANYMEDE_MPI_PATIENCE: found \"{}\", expected seconds, 1 to {}", text, kMost));
  return std::chrono::seconds(seconds);
}

}  // namespace ganymede::kernel
