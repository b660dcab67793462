#pragma once
// The queue: jobs wait, run a few at a time, and are remembered.

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
  std::filesystem::path data;                        ///< where jobs are kept; made if it is not there
  Checkpoints checkpoints;                           ///< besides those in DATA/checkpoints
  int at_once = 1;                                   ///< jobs that run
  int queue = 8;                                     ///< jobs that wait
  Seconds limit{600};                                ///< of a job's run
  std::function<void(const std::string&)> remark{};  ///< for people, from any thread
};

/// As many jobs wait as may. Like the others, it says what to do.
struct QueueFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct NoSuchJob : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Jobs {
 public:
  /// Knows the jobs of earlier servers. ConfigError as JobStore.
  explicit Jobs(JobOptions options);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  /// Stops what runs; what runs or waits is marked as interrupted.
  ~Jobs();

  Checkpoints checkpoints() const;
  const JobOptions& options() const { return options_; }

  int submit(const Form& form);
  /// ConfigError for one that has ended.
  void cancel(int id);
  /// Queues one again that was cancelled, interrupted or failed: the same input, in the same folder, where a sweep
  /// finds the runs that it has done. ConfigError for others.
  void again(int id);

  /// The newest first, at most 200.
  nlohmann::ordered_json list() const;
  nlohmann::ordered_json describe(int id) const;
  /// Where it lies; none: the job has no such file (yet).
  std::optional<std::filesystem::path> file(int id, std::string_view name) const;

 private:
  struct Job {
    JobRecord record;
    Progress progress;
    std::chrono::steady_clock::time_point started;
    std::shared_ptr<StopSignal> stop;  ///< while it waits or runs
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
  std::map<int, Job> jobs_;  // entries stay where they are
  std::deque<int> queue_;
  std::size_t running_ = 0;
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ganymede::serve
