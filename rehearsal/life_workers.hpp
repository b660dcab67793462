#pragma once
// The workers of one start of the training program in a rehearsed life, the memory that they share with the process
// that leads them, and the checkpoint that they write and read.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/local_network.hpp"
#include "rehearsal/socket_messenger.hpp"
#include "rehearsal/step_plan.hpp"
#include "rehearsal/step_player.hpp"

namespace ganymede::rehearsal {

// The processes of a rehearsed life, which the leading process forks, ends and buries: one for each node, and on the
// nodes the workers that train.

/// A message of a process to the leader.
struct Wake {
  enum class Kind : std::uint32_t {
    node_ready,     ///< node `number` has booted
    notice_heard,   ///< node `number` got SIGTERM
    workers_ready,  ///< all workers of start `number` can begin
    workers_ended,  ///< all workers of start `number` have ended their last step
    task_done,      ///< task `number`
  };
  Kind kind;
  std::uint64_t number;
};

/// A pipe through which processes wake the leader up.
class WakePipe {
 public:
  WakePipe();
  ~WakePipe();
  WakePipe(const WakePipe&) = delete;
  WakePipe& operator=(const WakePipe&) = delete;

  /// Also in handlers of signals.
  void send(Wake wake) const;
  std::optional<Wake> take() const;
  /// Returns when something may have come, after `seconds` at the latest.
  void wait(double seconds) const;

 private:
  int ends_[2];
};

/// Starts the process of a node, which boots until the moment `ready_at` of the machine's clock. Then it exists until
/// it is killed, and tells of the first SIGTERM.
pid_t start_node(const WakePipe& pipe, std::uint64_t node, double ready_at);

/// A worker's task before it plays a step.
struct StepBegin {
  bool checkpoint_first = false;
};

/// One start of the training program: its workers play steps 1, 2, … until the leader stops them or the last one is
/// done. Steps here are those that are played, each of which may stand for several of the scenario.
class LifeBoard {
 public:
  /// Made before the workers are forked.
  LifeBoard(int ranks, std::size_t buckets, std::int64_t most_steps);
  int ranks() const { return ranks_; }

  struct Orders {
    std::atomic<bool> go{false};              ///< begin with step 1
    std::atomic<std::int64_t> due{-1};        ///< a checkpoint follows that step; -1: none does
    std::atomic<std::int64_t> every{0};       ///< steps from one checkpoint to the next; 0: there is no next one
    std::atomic<double> checkpoint_s{0};      ///< how long one takes to write
    std::atomic<double> rate_bytes_per_s{0};  ///< of each NIC
  };
  Orders& orders() { return head_->orders; }
  /// Times as long as planned that the phases of a rank take.
  std::atomic<double>& slow_factor(int rank) { return rank_of(rank).slow_factor; }
  /// Lets all workers end after the step that any of them has begun.
  void stop() { head_->begun.fetch_or(kStop); }
  /// Sets the number of the last step; false: the workers already end, after the last step that was set before.
  bool set_last(std::int64_t last);

  /// A worker asks whether to play step `number`, after those before; none: training ends. All workers get the same
  /// answer: the first one that asks decides for all, so that they need no message to agree.
  std::optional<StepBegin> begin(std::int64_t number);
  /// Returns true for the last rank that reports, whose duty it is to wake the leader.
  bool is_last_ready() { return head_->ready.fetch_add(1) + 1 == ranks_; }
  bool is_last_ended() { return head_->ended.fetch_add(1) + 1 == ranks_; }
  void finish(int rank, const PlayedStep& step);
  /// Keeps why a worker fails, for fault().
  void fail(int rank, const std::string& why);

  // The two calls of the worker that writes a checkpoint.
  void begin_saving(double now) { head_->saving_since = now; }
  void end_saving(std::int64_t after_step, double now);

  struct Saved {
    std::int64_t count = 0, after_step = 0;  ///< complete checkpoints, and the last step in one of them
    double seconds = 0;                      ///< that all of them took
    double since = 0;                        ///< when the one under way began; 0: none is
  };
  Saved saved() const;
  /// Steps that all ranks have finished.
  std::int64_t finished() const;
  /// Steps from `first` (counted from 0) to `end`, by step and rank.
  std::vector<std::vector<PlayedStep>> played(std::int64_t first, std::int64_t end) const;
  std::string fault(int rank) const;

 private:
  static constexpr std::uint64_t kStop = 1, kCheckpoint = 2;
  // Bits of `begun`: two flags, the number of the step, and how often the last step was set.
  static constexpr int kFlags = 2, kSettings = 48;

  struct Head {
    Orders orders;
    std::atomic<std::int64_t> last{0};    ///< number of the last step
    std::atomic<std::uint64_t> begun{0};  ///< the latest step that a rank has begun, and more
    std::atomic<int> ready{0}, ended{0};
    std::atomic<std::int64_t> saved{0}, saved_after{0};
    std::atomic<double> saving_s{0}, saving_since{0};
  };
  struct Rank {
    std::atomic<std::int64_t> finished{0};
    std::atomic<double> slow_factor{1};
    char fault[256] = {};
  };
  Rank& rank_of(int rank) const { return ranks_head_[rank]; }
  double* numbers_of(int rank, std::int64_t step) const;

  int ranks_;
  std::size_t buckets_, numbers_;
  std::int64_t most_steps_;
  std::optional<SharedMemory> memory_;
  Head* head_ = nullptr;
  Rank* ranks_head_ = nullptr;
  double* rows_ = nullptr;
};

/// A file without a name, which is gone when its last process is. It has two places: a checkpoint is written to the one
/// that does not hold the last complete checkpoint, synced, and only then counts. A process that is killed while it
/// writes leaves the last one as it was.
class LifeCheckpoint {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;  ///< of a larger one, only so much is written

  /// In the system's folder for temporary files. Throws Failure. Made before the processes that use it are forked.
  explicit LifeCheckpoint(double bytes);
  ~LifeCheckpoint();
  LifeCheckpoint(const LifeCheckpoint&) = delete;
  LifeCheckpoint& operator=(const LifeCheckpoint&) = delete;

  /// Writes the next checkpoint, which is complete at the moment `until` of the machine's clock or as soon after it as
  /// the disk is done.
  void write(double until);
  /// Reads the last complete one until that moment. Throws Failure if it is not what was written.
  void read(double until) const;
  std::int64_t complete() const { return *complete_; }  ///< checkpoints that were completed

 private:
  std::vector<std::uint64_t> content(std::int64_t number) const;

  std::size_t words_;
  SharedMemory memory_;
  int file_;
  std::atomic<std::int64_t>* complete_;  // shared
};

/// The steps of a number of workers, and which recorded steps they repeat.
struct StepsOfWorkers {
  StepPlan plan;
  std::vector<std::vector<std::size_t>> rows;  ///< by step and rank; begins anew after the last
};

struct WorkersRequest {
  std::uint64_t number = 0;  ///< of the start
  const StepsOfWorkers* steps = nullptr;
  std::size_t first_row = 0;  ///< index into its rows, for the first step
  Shaping shaping = {};
  const NameSpaces* spaces = nullptr;
  std::vector<int> hosts = {};    ///< by rank
  std::vector<pid_t> nodes = {};  ///< by rank: the process of the node
  double loading_from = 0;        ///< the program starts until then, in seconds of the machine's clock,
  double begins_at = 0;           ///< and reads a checkpoint until then; the same: it reads none
  std::int64_t most_steps = 0;
};

/// One process on each node that trains.
class Workers {
 public:
  /// Starts the workers, which get ready and then wait for Orders::go. `pipe` and `checkpoint` must outlive this.
  Workers(const WorkersRequest& request, const WakePipe& pipe, LifeCheckpoint& checkpoint);
  /// Kills those that still run.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::uint64_t number() const { return request_.number; }
  const WorkersRequest& request() const { return request_; }
  LifeBoard& board() { return board_; }
  const std::vector<std::size_t>& waiting_phases() const { return wait_before_; }
  /// The first worker that ended otherwise than after its last step: "rank 1: signal 9 (Killed)"; "": none did.
  std::string fault() const;

 private:
  void work(std::size_t rank, const WakePipe& pipe, LifeCheckpoint& checkpoint);
  void start(Group& group, LifeCheckpoint& checkpoint) const;
  void train(Group& group, StepPlayer& player, SocketMessenger& messenger, LifeCheckpoint& checkpoint);
  void save(Group& group, std::int64_t after_step, LifeCheckpoint& checkpoint);

  WorkersRequest request_;
  LifeBoard board_;
  std::vector<std::size_t> wait_before_;
  HostConnections connections_;
  std::vector<pid_t> pids_;  // by rank
};

}  // namespace ganymede::rehearsal
