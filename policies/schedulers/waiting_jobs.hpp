#pragma once
// The jobs that wait, kept in the scheduler's order, so that a decision looks at those alone that may start.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace ganymede::policies {

struct JobView;

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
  explicit WaitingJobs(Kinds kinds = Kinds::size) : kinds_(kinds) {}

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
  JobKind kind_of(const JobView& job) const;

  Kinds kinds_;
  std::map<JobKind, Queue> queues_;
  std::map<std::size_t, std::pair<double, const JobView*>> ranks_;  // by number
  std::multiset<std::int64_t> priorities_;
};

/// Goes through waiting jobs by rank, then by number, whatever their kind. They must not change meanwhile.
class WaitingWalk {
 public:
  /// `rank` replaces the ranks with which jobs were added; within a kind it must order jobs as these do, and no job may
  /// then be passed over.
  explicit WaitingWalk(const WaitingJobs& jobs, std::function<double(const JobView&)> rank = nullptr);

  /// The next job of a kind that may start now; null at the end. Jobs of other kinds that stand before it are passed
  /// over for good, and these kinds are not asked about again before reconsider().
  const JobView* next(const std::function<bool(const JobKind&)>& may_start);
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
  };
  static bool is_later(const Head& a, const Head& b) { return a.place > b.place; }
  void push(Head head);

  std::function<double(const JobView&)> rank_;
  std::vector<Head> heads_;  // a heap, with the earliest place on top
  std::vector<Head> passed_over_;
  WaitingJobs::Place last_;
};

}  // namespace ganymede::policies
