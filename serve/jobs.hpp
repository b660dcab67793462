#pragma once
// The queue of jobs: they wait, run a few at a time, and are kept on disk.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/units.hpp"
#include "serve/job_work.hpp"

namespace ganymede::serve {

struct JobOptions {
  std::filesystem::path data;                        ///< folder of the jobs; made if it does not exist
  Checkpoints checkpoints;                           ///< offered besides those in DATA/checkpoints
  int at_once = 1;                                   ///< jobs that run at the same time
  int queue = 8;                                     ///< jobs that wait, at most
  Seconds limit{600};                                ///< seconds that a job may run
  std::function<void(const std::string&)> remark{};  ///< gets messages for people, from any thread
};

/// Thrown if the queue is full or the server is ending. The message says what to do.
struct QueueFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown for an id that no job has.
struct NoSuchJob : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Jobs {
 public:
  /// Loads the jobs of earlier servers. Throws ConfigError in the same cases as JobStore.
  explicit Jobs(JobOptions options);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  /// Stops the running jobs, and marks running and waiting ones as interrupted.
  ~Jobs();

  Checkpoints checkpoints() const;
  const JobOptions& options() const { return options_; }

  /// Queues a job and returns its id. Throws QueueFull if no more jobs may wait.
  int submit(const Form& form);
  /// Takes the job from the queue or stops it. Throws ConfigError if it has ended. This and the functions below throw
  /// NoSuchJob for an id that no job has.
  void cancel(int id);
  /// Queues a job again that was cancelled, interrupted or failed. It gets the same input and the same folder, in which
  /// a sweep finds the runs that it has done. Throws ConfigError for other states, and QueueFull as submit() does.
  void again(int id);

  /// The newest jobs first, at most 200.
  nlohmann::ordered_json list() const;
  nlohmann::ordered_json describe(int id) const;
  /// Path of a file of the job; none if the job does not have it, or not yet.
  std::optional<std::filesystem::path> file(int id, std::string_view name) const;

 private:
  struct Job {
    JobRecord record;
    Progress progress;
    std::chrono::steady_clock::time_point started;
    std::shared_ptr<StopSignal> stop;  ///< not null while the job waits or runs
    bool cancelled = false;            ///< by the user, not by the end of the server
  };

  const Job& find(int id) const;
  Job& find(int id) { return const_cast<Job&>(std::as_const(*this).find(id)); }
  void enqueue(Job& job);
  void refuse_if_full() const;
  void work();
  void run(Job& job, std::unique_lock<std::mutex>& lock);
  void save(const Job& job) const;
  nlohmann::ordered_json json_of(const Job& job) const;

  JobOptions options_;
  JobStore store_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Job> jobs_;  // a map, because references to its entries stay valid
  std::deque<int> queue_;
  std::size_t running_ = 0;
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ganymede::serve
