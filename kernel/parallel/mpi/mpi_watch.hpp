#pragma once
// Ends a training whose processes wait for one that does not answer any more. MPI alone would wait for ever for a
// process that is stopped, or whose machine is gone.

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ganymede::kernel {

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

}  // namespace ganymede::kernel
