// Communication between processes that an MPI launcher started, and messages between them. It is a module that is
// loaded only if there are several processes, so that a single process needs no MPI and starts quickly.

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/mpi/mpi_calls.hpp"

namespace ganymede::kernel {
namespace {

/// A thread that answers the other processes' questions whether this one lives, and asks them if this one waits too
/// long. All processes construct and destroy it together.
class MpiWatch {
 public:
  /// `patience`: how long a call may wait before the others are asked.
  explicit MpiWatch(std::chrono::seconds patience);
  ~MpiWatch();
  MpiWatch(const MpiWatch&) = delete;
  MpiWatch& operator=(const MpiWatch&) = delete;

  enum class Caller { values, gradients };  ///< two threads may wait at a time

  /// As long as this lives, its caller waits for other processes in `what`.
  class Waiting {
   public:
    Waiting(MpiWatch& watch, Caller caller, const char* what);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::atomic<std::int64_t>& since_;
  };

  /// The patience that GANYMEDE_MPI_PATIENCE states in seconds; 300 without it. Throws ConfigError if it is no number
  /// from 1 to 1,000,000.
  static std::chrono::seconds stated_patience();

 private:
  struct Place {
    std::atomic<std::int64_t> since_ns{0};  ///< of the steady clock; 0: nobody waits here
    std::atomic<const char*> what{nullptr};
  };

  void work();
  void answer_questions();
  void ask_everyone(const char* what, double waited_s);

  std::chrono::seconds patience_;
  MPI_Comm line_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  std::vector<std::string> hosts_;  ///< of each rank
  std::array<Place, 2> places_;
  std::vector<char> answered_;  ///< by rank, since the last question
  std::mutex mutex_;
  std::condition_variable woken_;
  bool stop_ = false;
  std::thread thread_;
};

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

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : session_(MPI_THREAD_MULTIPLE), watch_(MpiWatch::stated_patience()) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &gradients_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &shard_.rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &shard_.ranks), "MPI_Comm_size");
  }
  ~MpiCommunicator() override {
    if (!session_.failing()) MPI_Comm_free(&gradients_);
  }

  std::string name() const override { return mpi_name(); }
  Shard shard() const override { return shard_; }

  void sum(std::span<double> values) override {
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::values, "a sum over all ranks");
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
  }
  void sum_gradients(std::span<float> values) override {
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::gradients, "the sum of gradients");
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_FLOAT, MPI_SUM, gradients_),
              "MPI_Allreduce");
  }
  void gather_gradients(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) override {
    const MpiWatch::Waiting waiting(watch_, MpiWatch::Caller::gradients, "the exchange of gradients");
    check_mpi(
        MPI_Allgather(mine.data(), count(mine.size()), MPI_BYTE, all.data(), count(mine.size()), MPI_BYTE, gradients_),
        "MPI_Allgather");
  }

 private:
  static int count(std::size_t size) { return static_cast<int>(size); }

  MpiSession session_;
  MpiWatch watch_;
  Shard shard_;
  MPI_Comm gradients_ = MPI_COMM_NULL;
};

class MpiMessenger final : public Messenger {
 public:
  MpiMessenger() : session_(MPI_THREAD_SINGLE) {
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    MPI_Comm here = MPI_COMM_NULL;
    int ranks_here = 1;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
              "MPI_Comm_split_type");
    check_mpi(MPI_Comm_size(here, &ranks_here), "MPI_Comm_size");
    MPI_Comm_free(&here);
    naps_ = ranks_here > ::sysconf(_SC_NPROCESSORS_ONLN);
  }

  std::string name() const override { return mpi_name(); }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Message send(std::span<const std::byte> bytes, int to, int tag) override {
    const Message message = free_message();
    check_mpi(
        MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests_[message]),
        "MPI_Isend");
    return message;
  }
  Message receive(std::span<std::byte> bytes, int from, int tag) override {
    const Message message = free_message();
    check_mpi(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag, MPI_COMM_WORLD,
                        &requests_[message]),
              "MPI_Irecv");
    return message;
  }
  bool done(Message message) override {
    int flag = 0;
    check_mpi(MPI_Test(&requests_[message], &flag, MPI_STATUS_IGNORE), "MPI_Test");
    if (flag != 0) free_.push_back(message);
    return flag != 0;
  }
  // MPI makes progress only inside its calls, so this returns at once, or soon if others need the processor.
  void wait(double seconds) override {
    if (naps_)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kNap)));
    else
      std::this_thread::yield();
  }
  void rest(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

 private:
  static constexpr double kNap = 20e-6;  // seconds; a message that arrives meanwhile is seen so much later

  Message free_message() {
    if (free_.empty()) {
      requests_.push_back(MPI_REQUEST_NULL);
      return requests_.size() - 1;
    }
    const Message message = free_.back();
    free_.pop_back();
    return message;
  }

  MpiSession session_;
  int rank_ = 0, ranks_ = 1;
  bool naps_ = false;  // more processes than processors are here
  std::vector<MPI_Request> requests_;
  std::vector<Message> free_;
};

}  // namespace

}  // namespace ganymede::kernel
extern "C" ganymede::kernel::Communicator* ganymede_make_communicator() {
  return new ganymede::kernel::MpiCommunicator;
}
extern "C" ganymede::kernel::Messenger* ganymede_make_messenger() { return new ganymede::kernel::MpiMessenger; }
