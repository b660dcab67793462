#pragma once
// The state of a cluster at one moment and its constant context. Transitions (declared below) change the
// state; the loop (cluster_simulation.hpp) says when. The clock is that of a run: whole nanoseconds. Each job trains in
// the segments of a run, whose steps become longer while other jobs share its links, stores or GPU.

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/cluster/cluster_record.hpp"
#include "sim/cluster/contention.hpp"
#include "sim/cluster/external_scheduler.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/run/training.hpp"

namespace ganymede::sim {

/// A job that runs.
struct RunningJob {
  std::size_t job = 0;
  std::size_t pool = 0;
  std::vector<GpuSlot> slots;
  const JobSpeed* speed = nullptr;
  double efficiency = 1;
  TalkingJob talk;                     ///< what its collectives put on links; no uses: nothing
  SharedStep beside;                   ///< its step beside the others, since its segment began
  Nanoseconds begins = 0;              ///< when its restart is over; it makes no progress before
  Nanoseconds held_until = 0;          ///< until when the GPUs that it holds are counted
  Nanoseconds trained = kNever;        ///< when its last step ends at the present pace
  Nanoseconds ends = kNever;           ///< when it ends at this pace; a last checkpoint may follow its last step
  Nanoseconds cached = kNever;         ///< when its caches have its images at this pace; kNever: they do, or never will
  double steps_before = 0;             ///< that it had trained when it came here
  bool reads = false;                  ///< its images come from a store; its caches do not have them all
  bool begun = false;                  ///< it has begun to train here
  std::optional<std::size_t> partner;  ///< a job on the same GPU
  bool estimated = false;              ///< how fast the two are there was not measured
  bool guest = false;                  ///< it came to another job's GPU; the scheduler counts it as waiting

  double gpus() const { return gpus_held(slots, partner.has_value()); }
};

/// Runs jobs in another way than at paces that follow from formulas, as a RunWorld does a run.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Waits until then or until a job has ended, and returns the time.
  virtual Nanoseconds wait(Nanoseconds until) = 0;
  /// The job has new GPUs, and is to do `steps` steps there as the segment says, from its start to `trained` or later.
  virtual void begin(const RunningJob& running, const Segment& segment, double steps, Nanoseconds trained) = 0;
  /// Its work since begin().
  virtual SegmentProgress progress(std::size_t job) const = 0;
  virtual bool ended(std::size_t job) const = 0;
  /// It loses its GPUs.
  virtual void stop(std::size_t job) = 0;
};

/// All of this stays the same during the life of a cluster.
struct ClusterContext {
  const Cluster& cluster;
  JobSpeeds& speeds;
  JobRunner* runner = nullptr;                             ///< null: jobs go on as formulas say
  std::vector<std::vector<std::size_t>> unlocks = {};      ///< by job: those that wait for it
  std::vector<std::unique_ptr<FabricGraph>> fabrics = {};  ///< by pool; null: jobs share no links there
  std::vector<int> first_link = {};                        ///< by pool, in the links of the whole cluster
};

struct JobState {
  /// Its progress in the unit of JobSpeeds::work_of(). It has no ledger: GPUs are counted by stays.
  TrainingProgress training{std::vector<TrainingNode>{}};
  int blocked_by = 0;  ///< jobs that it still waits for
  double attained_gpu_s = 0;
  Nanoseconds since = 0;  ///< since when it has run or waited
  bool ready = false, done = false;
  bool running = false;  ///< on GPUs of its own or of another job
  bool queued = false;   ///< among those that the scheduler sees wait
};

struct ClusterState {
  Nanoseconds now = 0;
  ClusterRecord record;
  std::vector<JobState> jobs;
  std::vector<FreeNodes> nodes;  ///< by pool
  std::vector<RunningJob> running;
  std::set<std::size_t> active = {};  ///< jobs that are ready and not done
  std::int64_t active_gpus = 0;       ///< that these ask for together
  std::size_t next_arrival = 0;
  Contention contention;
  double beat_messages_left = 0;  ///< of those that beats may simulate

  // The scheduler sees these.
  std::vector<policies::PoolState> pools;
  std::vector<policies::OwnerState> owners;
  std::vector<policies::JobView> views;  ///< by job
  policies::WaitingJobs waiting;
  policies::PolicyMemory memory = {};
  std::unique_ptr<ExternalScheduler> external = {};
  Nanoseconds decided = 0;          ///< when it last decided
  std::int64_t idle_decisions = 0;  ///< since a job last arrived, ended or got on
};

/// `cluster`, `speeds` and `runner` must outlive it.
ClusterContext context_of(const Cluster& cluster, JobSpeeds& speeds, JobRunner* runner);
/// The state before the first arrival.
ClusterState initial_state(const ClusterContext& context);

/// Bills count this far, 126 years: no cluster lives longer.
inline constexpr Nanoseconds kLongestLife = 4'000'000'000'000'000'000;
/// The nearest moment of the clock: kNever for infinity, and the first one after kLongestLife for what is later.
Nanoseconds clock_at(double seconds);
/// The first moment at which the job is there.
Nanoseconds arrival_of(const ClusterJob& job);

RunningJob* find_running(ClusterState& state, std::size_t job);
MeasuredModel model_of(const Cluster& cluster, std::size_t job);

// Transitions in the life of a cluster: functions of its context and its state, which they change. They have no
// other effects.

// cluster_jobs.cpp

/// Jobs whose time has come arrive; those that wait for no other become ready. Throws Infeasible if one can run in no
/// pool.
void arrive_due(const ClusterContext& context, ClusterState& state);
/// Jobs that end now give their GPUs back, and those that waited for them become ready.
void finish_due(const ClusterContext& context, ClusterState& state);
/// Throws Infeasible if the job cannot run on the GPUs that its placement gives it.
void start_job(const ClusterContext& context, ClusterState& state, const policies::Grant& grant);
/// Takes the GPUs from the job `state.running[index]`. Unless it is done, it has saved its state.
void stop_job(const ClusterContext& context, ClusterState& state, std::size_t index, bool done);
/// Puts a waiting job beside one that runs on a GPU. `estimated`: how fast the two are was not measured.
void pair_up(const ClusterContext& context, ClusterState& state, RunningJob& host, std::size_t guest, bool estimated);
/// Adds to the records the GPUs that the job has held up to now.
void count_held(const ClusterContext& context, ClusterState& state, RunningJob& running);
/// Notes in the record how many jobs wait and run, if that has changed.
void note_queue(const ClusterContext& context, ClusterState& state);

/// Puts the job where it belongs among those that the scheduler sees wait.
void enqueue(const ClusterContext& context, ClusterState& state, std::size_t job);
void dequeue(ClusterState& state, std::size_t job);
/// Asks the scheduler. Throws Failure for a schedule that the cluster cannot follow.
policies::JobSchedule decide(const ClusterContext& context, ClusterState& state);
void follow(const ClusterContext& context, ClusterState& state, const policies::JobSchedule& schedule);
/// Puts waiting jobs of one GPU beside running ones, each where the two are fastest together.
void pack(const ClusterContext& context, ClusterState& state);
/// Says which jobs share no GPU although they might, and for which the speeds on a shared one are estimated.
void warn_of_packing(const ClusterContext& context);

// cluster_rates.cpp

/// Gives each job the pace that the others leave it: a job whose pace changes begins another segment.
void update_paces(const ClusterContext& context, ClusterState& state);
/// Ends the segment of the job, if one is under way, and counts what was done in it.
void end_segment(const ClusterContext& context, ClusterState& state, const RunningJob& running);
/// The job's work up to now.
double work_done(const ClusterContext& context, ClusterState& state, const RunningJob& running);
/// The caches of the nodes of jobs that have read their whole dataset by now serve it from now on.
void end_reading(const ClusterContext& context, ClusterState& state);
TalkingJob talk_of(const ClusterContext& context, const RunningJob& running);

}  // namespace ganymede::sim
