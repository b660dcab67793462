#pragma once
// The jobs: they wait, run a few at a time, and are kept on disk.
//
// A job begins in the short lane. One that has run for longer than `JobOptions::short_run` goes on in the background,
// at a lower priority, and its place in the short lane is free for the next. Jobs for which the background has no place
// are held; they take turns with those that have one, so that each goes on. Short jobs wait only for other short ones.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "serve/command_run.hpp"
#include "serve/form_options.hpp"
#include "serve/job_store.hpp"

namespace ganymede::serve {

struct JobOptions {
  std::filesystem::path data;                        ///< folder of the jobs; made if it does not exist
  Checkpoints checkpoints;                           ///< offered besides those in DATA/checkpoints
  int at_once = 1;                                   ///< places in the short lane, and as many in the background
  int queue = 8;                                     ///< jobs that wait or are held, at most
  Seconds limit{600};                                ///< for which a job may run
  Seconds short_run{10};                             ///< after which a job goes to the background; also a turn there
  Bytes disk{10737418240};                           ///< of `data`, at most
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

  /// The files that forms may name: checkpoints, those of trainings here among them as "job-7", and uploads.
  Offer offer() const;
  UploadStore& uploads() { return uploads_; }
  const JobOptions& options() const { return options_; }

  /// Queues a job and returns its id. Throws QueueFull if no more jobs may wait.
  int submit(const Form& form);
  /// Takes the job from the queue or stops it. Throws ConfigError if it has ended. This and the functions below throw
  /// NoSuchJob for an id that no job has.
  void cancel(int id);
  /// Queues a job again that was cancelled, interrupted or failed. It gets the same input and the same folder, in which
  /// a sweep finds the runs that it has done. Throws ConfigError for other states, and QueueFull as submit() does.
  void again(int id);
  /// Gives the job a name for people; "" takes it away.
  void name(int id, const std::string& name);
  /// Removes the job and its folder. Throws ConfigError if it waits or runs.
  void forget(int id);

  /// The newest jobs first, at most 200.
  OrderedJson list() const;
  OrderedJson describe(int id) const;
  /// The differences between the results of two ended jobs of one kind, as text. Throws ConfigError for jobs without
  /// results and for those that cannot be compared.
  std::string differences(int before, int after) const;
  /// Path of a file of the job, which must be one of job_files() or a picture_file(); none if the job does not have it,
  /// or not yet.
  std::optional<std::filesystem::path> file(int id, std::string_view name) const;

 private:
  enum class Lane { none, quick, background, held };

  struct Job {
    JobRecord record;
    Progress progress;
    Losses losses;  ///< of a training that runs
    std::chrono::steady_clock::time_point started;
    std::chrono::steady_clock::duration held{0};       ///< in earlier times of being held
    Lane lane = Lane::none;                            ///< other than none while the job runs
    std::chrono::steady_clock::time_point since{};     ///< when it entered its lane
    std::shared_ptr<StopSignal> stop;                  ///< not null while the job waits or runs
    bool cancelled = false;                            ///< by the user, not by the end of the server
    bool too_large = false;                            ///< stopped because the disk's quota was used up
    std::chrono::steady_clock::time_point measured{};  ///< when the disk's use was last looked up
  };

  const Job& find(int id) const;
  Job& find(int id) { return const_cast<Job&>(std::as_const(*this).find(id)); }
  void enqueue(Job& job);
  void refuse_if_full() const;
  void stop_beyond_quota(Job& job);
  void begin_what_may();
  void work();
  void run(Job& job, std::unique_lock<std::mutex>& lock);
  Pace pace_of(Job& job);
  void change_lane(Job& job, Lane lane);
  double seconds_of(const Job& job) const;
  void save(const Job& job) const;
  OrderedJson json_of(const Job& job) const;

  JobOptions options_;
  JobStore store_;
  std::vector<std::string> remarks_;  ///< on what was loaded
  UploadStore uploads_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Job> jobs_;       // a map, because references to its entries stay valid
  std::deque<int> queue_, held_;  ///< ids; the one that has waited longest first
  int quick_ = 0, background_ = 0;
  int idle_ = 0;  ///< threads of `workers_` without a job
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ganymede::serve
