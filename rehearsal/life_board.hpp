#pragma once
// Memory that the workers of a rehearsed life share with the process that leads them: what they shall do, and what they
// have done.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/played_steps.hpp"

namespace ganymede::rehearsal {

/// What a worker does before it plays a step.
struct StepBegin {
  bool checkpoint_first = false;
};

/// One start of the training program: its workers play steps 1, 2, … until the leader stops them or the last one is
/// done. Steps here are those that are played, each of which may stand for several of the scenario.
class LifeBoard {
 public:
  /// Made before the workers are forked.
  LifeBoard(int ranks, std::size_t buckets, std::int64_t most_steps);
  ~LifeBoard();
  LifeBoard(const LifeBoard&) = delete;
  LifeBoard& operator=(const LifeBoard&) = delete;

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
  std::size_t size_ = 0;
  void* memory_ = nullptr;
  Head* head_ = nullptr;
  Rank* ranks_head_ = nullptr;
  double* rows_ = nullptr;
};

}  // namespace ganymede::rehearsal
