#pragma once
// The life of a cluster: a loop over arrivals, ends and the scheduler's rounds. Between two events every job goes on at
// one speed, so that the cost grows with events, not with steps.

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/cluster/cluster_record.hpp"
#include "sim/cluster/contention.hpp"
#include "sim/cluster/external_scheduler.hpp"
#include "sim/cluster/job_speeds.hpp"

namespace ganymede::sim {

/// Simulates the cluster until its last job has ended. Throws Infeasible if a job can run nowhere or is starved for
/// ever, and Failure if an external scheduler fails. At message fidelity a process may call this once.
ClusterRecord simulate_cluster(const Cluster& cluster);

/// A job that runs.
struct RunningJob {
  std::size_t job = 0;
  std::size_t pool = 0;
  std::vector<GpuSlot> slots;
  const JobSpeed* speed = nullptr;
  double efficiency = 1;
  TalkingJob talk;                     ///< what its collectives put on links; no uses: nothing
  double rate = 0;                     ///< work for each second, once it progresses; with a runner of its latest time
  bool begun = false;                  ///< the runner knows of it
  double counted = 0;                  ///< with a runner: what is counted of what it has done here
  double progress_s = 0;               ///< until when its progress is counted, or when its restart is over
  double accounted_s = 0;              ///< until when the GPUs that it holds are counted
  double end_s = 0;                    ///< when it ends at this rate
  double to_read = 0;                  ///< images of its first epoch here that it still reads; 0: its caches have them
  double cached_s = 0;                 ///< when its caches have them at this rate; infinity: they do, or never will
  std::optional<std::size_t> partner;  ///< a job on the same GPU
  bool estimated = false;              ///< how fast the two are there was not measured
  bool guest = false;                  ///< it came to another job's GPU; the scheduler counts it as waiting
};

/// Runs jobs in another way than at rates that follow from formulas.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Waits until then or until a job has ended, and returns the time.
  virtual double wait(double until_s) = 0;
  /// The job has new GPUs; it still has to do `left` from `running.progress_s` on.
  virtual void begin(const RunningJob& running, double left) = 0;
  /// What it has done since begin(), in the unit of `left`.
  virtual double done(std::size_t job) const = 0;
  virtual bool ended(std::size_t job) const = 0;
  /// It loses its GPUs.
  virtual void stop(std::size_t job) = 0;
};

class ClusterSimulation {
 public:
  /// `cluster` must outlive this.
  explicit ClusterSimulation(const Cluster& cluster);
  /// Jobs go on at rates, or as `runner` says.
  ClusterRecord run(JobRunner* runner = nullptr);
  JobSpeeds& speeds() { return speeds_; }

 private:
  struct JobState {
    int blocked_by = 0;  // jobs that it still waits for
    double left = 0;     // of its work
    double attained_gpu_s = 0;
    double since_s = 0;  // since when it has run or waited
    bool ready = false, done = false;
    bool running = false;  // on GPUs of its own or of another job
    bool queued = false;   // among those that the scheduler sees wait
  };

  void arrive(double now);
  void make_ready(std::size_t job, double now);
  void finish_due(double now);
  void finish(std::size_t index, double now);
  double next_end() const;
  double next_event(double until_s);
  double next_cached() const;
  void end_reading(double now);
  [[noreturn]] void fail_starved() const;

  policies::JobSchedule ask();
  void begin_view();
  void refresh_view(std::size_t job);
  std::vector<const policies::JobView*> refresh_running();
  void enqueue(std::size_t job);
  void dequeue(std::size_t job);
  void apply(const policies::JobSchedule& schedule);
  void check(const policies::JobSchedule& schedule) const;
  void start(const policies::Grant& grant);
  void stop(std::size_t index, bool done);
  void pack();
  void warn_of_packing();
  void pair_up(RunningJob& host, std::size_t guest, bool estimated);

  void account(RunningJob& running);
  void open_stay(const RunningJob& running);
  void close_stay(const RunningJob& running);
  TalkingJob talk_of(const RunningJob& running);
  std::vector<double> steps_beside_others() const;
  void update_rates();
  void begin_new();
  double packed_factor(const RunningJob& running);
  void note_queue();
  RunningJob* find_running(std::size_t job);
  MeasuredModel model_of(std::size_t job) const;

  const Cluster& cluster_;
  JobRunner* runner_ = nullptr;
  JobSpeeds speeds_;
  ClusterRecord record_;
  std::vector<JobState> states_;
  std::vector<std::vector<std::size_t>> unlocks_;  // by job: those that wait for it
  std::vector<FreeNodes> nodes_;                   // by pool
  std::vector<std::unique_ptr<FabricGraph>> fabrics_;
  std::vector<int> first_link_;  // by pool, in the links of the whole cluster
  std::unique_ptr<Contention> contention_;
  std::vector<RunningJob> running_;
  std::set<std::size_t> active_;  // jobs that are ready and not done
  std::int64_t active_gpus_ = 0;  // that these ask for together
  std::size_t next_arrival_ = 0;
  std::vector<policies::PoolState> pool_states_;
  std::vector<policies::OwnerState> owners_;
  std::vector<policies::JobView> views_;  // by job
  policies::WaitingJobs waiting_;
  policies::ClusterView view_;
  policies::PolicyMemory memory_;
  std::unique_ptr<ExternalScheduler> external_;
  double now_ = 0;
  std::int64_t idle_decisions_ = 0;  // since a job last arrived, ended or got on
  double worked_gpu_s_ = 0;          // busy GPU-seconds until the last decision
};

}  // namespace ganymede::sim
