#pragma once
// Schedulers of many jobs on one cluster: which jobs run now, on how many GPUs of which pool. A scheduler is a pure
// function of what it sees, its settings and its memory; it reads no clock and knows nothing of the simulator.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/policy.hpp"

namespace ganymede::policies {

struct JobView;
struct OwnerState;

/// Waiting jobs of a kind have this in common.
struct JobKind {
  int gpus = 1, least = 1;
  std::size_t owner = 0;
  std::int64_t priority = 0;
  auto operator<=>(const JobKind&) const = default;
};

/// By what waiting jobs are kept apart. Jobs of one kind must keep their order as long as they wait.
enum class Kinds { size, owner, owner_and_priority };

/// Waiting jobs by kind, in each kind by rank, then by number. The jobs must outlive their stay and keep their place in
/// memory.
class WaitingJobs {
 public:
  explicit WaitingJobs(Kinds kinds = Kinds::size, std::span<const OwnerState> owners = {});
  WaitingJobs(const WaitingJobs&) = delete;  // it points into itself
  WaitingJobs(WaitingJobs&&) = default;

  void add(const JobView& job, double rank);
  /// Precondition: the job was added and not yet removed.
  void remove(const JobView& job);
  std::size_t size() const { return ranks_.size(); }
  /// 0 if there are none.
  std::int64_t highest_priority() const;
  /// All of them in the order of their numbers.
  std::vector<const JobView*> all() const;

 private:
  friend class WaitingWalk;
  using Place = std::pair<double, std::size_t>;  // rank and number
  using Queue = std::map<Place, const JobView*>;
  using Kind = std::pair<const JobKind, Queue>;
  using Firsts = std::map<Place, const Kind*>;  // the kinds by the places of their first jobs
  using Size = std::pair<int, bool>;            // GPUs, and whether they are within the whole quota of the owner
  JobKind kind_of(const JobView& job) const;
  Size size_of(const JobKind& kind) const;
  /// Change what stands by size before and after a change of the kind's jobs.
  void unlist(const Kind& kind);
  void list(const Kind& kind);

  Kinds kinds_;
  std::vector<double> quotas_;  // by owner, where jobs are kept apart by them; below 0: none
  std::map<JobKind, Queue> queues_;
  std::map<Size, Firsts> sizes_;
  std::map<std::size_t, std::pair<double, const JobView*>> ranks_;  // by number
  std::multiset<std::int64_t> priorities_;
};

/// Goes through waiting jobs by rank, then by number, whatever their kind. They must not change meanwhile.
class WaitingWalk {
 public:
  /// `rank` replaces the ranks with which jobs were added; within a kind it must order jobs as these do, and no job may
  /// then be passed over.
  explicit WaitingWalk(const WaitingJobs& jobs, std::function<double(const JobView&)> rank = nullptr);
  /// Leaves out the jobs that ask for more than the whole quota of their owner.
  static WaitingWalk within_quotas(const WaitingJobs& jobs);

  /// The next job of at most so many GPUs and of a kind that may start now; null at the end. Jobs of other kinds that
  /// stand before it are passed over for good, and these kinds are not asked about again before reconsider(). From one
  /// call to the next `most_gpus` must not grow: of larger kinds none is looked at, however many there are.
  const JobView* next(const std::function<bool(const JobKind&)>& may_start,
                      int most_gpus = std::numeric_limits<int>::max());
  /// Kinds that could not start may be able to now, with their jobs behind the last one.
  void reconsider();
  /// Rank and number of the job that next() gave last.
  const std::pair<double, std::size_t>& place() const { return last_; }

 private:
  struct Head {
    const JobKind* kind;
    const WaitingJobs::Queue* queue;
    WaitingJobs::Queue::const_iterator at;
    WaitingJobs::Place place;
    const WaitingJobs::Firsts* size;  // the kinds behind this one at `next` follow when its turn has come; null: none
    WaitingJobs::Firsts::const_iterator next;
  };
  WaitingWalk() = default;
  static bool is_later(const Head& a, const Head& b) { return a.place > b.place; }
  void push(Head head);
  /// Puts the first job of the next kind of a size where it belongs, unless there is none.
  void push_kind(const WaitingJobs::Firsts& size, WaitingJobs::Firsts::const_iterator next);

  std::function<double(const JobView&)> rank_;
  std::vector<Head> heads_;  // a heap, with the earliest place on top
  std::vector<Head> passed_over_;
  WaitingJobs::Place last_;
};

inline constexpr double kNeverAgain = std::numeric_limits<double>::infinity();

/// Nodes of one instance type.
struct PoolState {
  std::string name;
  int nodes = 0, gpus_per_node = 1;
  int total() const { return nodes * gpus_per_node; }
};

/// Who jobs belong to: a user, a team, a queue.
struct OwnerState {
  std::string name;
  double quota_gpus = -1;  ///< GPUs that are the owner's own; below 0: no quota is set
  double used_gpu_s = 0;   ///< GPU-seconds that the owner's jobs have held so far
};

/// A job that has arrived, whose predecessors have finished, and that has not finished itself.
struct JobView {
  std::size_t job = 0;  ///< its number, in the order of arrival
  std::string_view name;
  double arrival_s = 0;       ///< when it could first have run
  int gpus = 1;               ///< GPUs asked for
  int least = 1, most = 1;    ///< the range within which it can run
  std::int64_t priority = 0;  ///< larger: more urgent
  std::optional<double> deadline_s;
  std::size_t owner = 0;      ///< index into ClusterView::owners
  int pool = -1;              ///< where it runs; -1: it waits
  int held = 0;               ///< GPUs that it holds
  double since_s = 0;         ///< since when it has run or waited
  double attained_gpu_s = 0;  ///< GPU-seconds held so far
  double left = 1;            ///< share of its work that is left
};

/// A scheduler may observe this.
struct ClusterView {
  double now_s = 0;
  std::span<const PoolState> pools;
  std::span<const OwnerState> owners;
  std::span<const JobView* const> running;  ///< jobs that hold GPUs, in the order of arrival
  const WaitingJobs* waiting = nullptr;
  /// Seconds that the whole job takes alone on so many GPUs of a pool, placed on as few nodes as possible; infinity if
  /// it cannot run there.
  std::function<double(const JobView& job, std::size_t pool, int gpus)> alone_s;
};

/// So many GPUs of a pool for a job.
struct Grant {
  std::size_t job = 0;
  std::size_t pool = 0;
  int gpus = 0;
};

/// The jobs that run from now on. A running job that is not listed is preempted; one that is listed as it runs goes on
/// undisturbed.
struct JobSchedule {
  std::vector<Grant> run;
  double again_s = kNeverAgain;  ///< when to ask again at the latest; jobs that arrive or finish come before
};

struct SchedulerCall {
  const ClusterView& view;
  std::span<const double> settings;  ///< in the order of Scheduler::settings
  PolicyMemory& memory;
};

/// A scheduler as it describes itself; lists, schemas and documentation read it from here.
struct Scheduler {
  std::string_view name, summary;
  std::string_view source;  ///< who proposed it, and where it is described
  std::span<const PolicySetting> settings = {};
  /// Where a job stands among those that wait: the smallest first, equal ones by arrival. It must stay the same as long
  /// as the job waits; only `pools` and `alone_s` of the view are there. Null: all equal.
  double (*rank)(const ClusterView& view, std::span<const double> settings, const JobView& job) = nullptr;
  Kinds kinds = Kinds::size;
  JobSchedule (*decide)(const SchedulerCall& call) = nullptr;  ///< null: a program of the user decides
  double events_a_job = 0;  ///< the work of a decision for each job that runs or waits, in events of a cluster
};

/// The register, in the order in which schedulers are listed; the first is the default.
std::span<const Scheduler> schedulers();
/// The scheduler of that name; nullptr if there is none.
const Scheduler* find_scheduler(std::string_view name);
std::vector<std::string> scheduler_names();

}  // namespace ganymede::policies
