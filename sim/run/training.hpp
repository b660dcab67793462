#pragma once
// The progress of a run's training, how much of it is durable, and where its GPU time went. Work that is not yet
// durable is kept in a separate account, because a sudden loss turns it into lost time.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ledger/ledger.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

// A segment of a run: steps of one configuration with checkpoints in between, as a formula of time. A run costs as much
// to simulate as it has segments and events, whatever its number of steps.

/// Progress of a segment at one moment.
struct SegmentProgress {
  double steps = 0;              ///< since the segment's start; the last may be under way
  std::int64_t checkpoints = 0;  ///< complete
  double writing_ns = 0;         ///< spent so far on a checkpoint that is under way
};

/// Measurements of a segment that was played for real (rehearsal/), in place of what its formula says.
struct MeasuredSegment {
  SegmentProgress progress;  ///< at the moment of the measurement
  double durable_steps = 0;  ///< steps before the last complete checkpoint
};

/// Steps of one configuration from `start` on. All workers wait while a checkpoint is written. For example, with a
/// checkpoint every 100 steps of 1 s that takes 5 s to write, and 40 steps since the last one: 60 s of steps, 5 s of
/// writing, then cycles of 100 s and 5 s.
struct Segment {
  Nanoseconds start = 0;
  const StepDistribution* steps = nullptr;
  Configuration configuration;
  double step_ns = 1;             ///< mean length of a step
  double per_step = 1;            ///< units of the target (steps or images) that a step trains
  double checkpoint_every = 0;    ///< steps between two checkpoints; 0: none are written
  double since_checkpoint = 0;    ///< steps since the last checkpoint, at `start`
  double checkpoint_ns = 0;       ///< time to write one checkpoint
  double checkpoint_written = 0;  ///< share of the first checkpoint that is already written at `start`, 0 … 1
  std::optional<MeasuredSegment> measured = {};  ///< what at() and durable_steps() return, if anything was measured

  SegmentProgress at(Nanoseconds now) const;
  /// The time at which `steps` steps are done, the checkpoints before them written.
  Nanoseconds time_of(double steps) const;
  /// Steps before the last of `checkpoints` complete checkpoints. Precondition: checkpoints >= 1.
  double durable_steps(std::int64_t checkpoints) const;

 private:
  /// Steps before the first checkpoint.
  double steps_to_first_checkpoint() const;
};

/// Steps of which `more` are to follow on `so_far` that have been trained, so that the last of all is whole; more than
/// 0.
double steps_to_whole(double so_far, double more);

/// The parts of a run's error, summed over its segments.
struct RunError {
  double sampling_s = 0;  ///< half-width of the mean steps' sampling, times their number
  double own_s2 = 0;      ///< variance of the sum of this run's own steps
  /// By how much steps of measured workloads may be shorter and longer: by their own relative error and by a factor for
  /// what several workers and their links may be off.
  double shorter_s = 0, longer_s = 0;
  double low_s = 0, high_s = 0;  ///< by how much steps of transferred workloads may be shorter and longer
};

/// Bytes that cross from one place to another, by a pool in each. A place is a zone or a region of a cloud.
using BytesBetween = std::map<std::pair<std::size_t, std::size_t>, double>;

/// Sums over all steps that were trained, including those that were lost later.
struct StepTotals {
  double steps = 0, training_s = 0;
  double device_s = 0, host_s = 0, flops = 0, link_s = 0;
  BytesBetween between;                                  ///< gradients and weights
  double reads = 0;                                      ///< requests to the dataset's storage
  double stale_steps = 0;                                ///< staleness times steps
  double vcpu_s = 0, vcpu_reserved_s = 0;                ///< vCPUs of the nodes that trained
  double memory_byte_s = 0, memory_reserved_byte_s = 0;  ///< memory of their hosts
  std::int64_t checkpoints = 0;                          ///< complete
};

/// What training has used, by pool of the run where it says so.
struct TrainingAccount {
  StepTotals totals;
  RunError error;
  std::vector<Ledger> ledgers;   ///< by pool: GPU time by use; idle time is the rest and is not added
  std::vector<double> device_s;  ///< by pool: GPU seconds in which a phase of the step ran
};

/// A node of a pool, as training sees it.
struct TrainingNode {
  int gpus = 1;             ///< GPUs that train
  double vcpus = 0;         ///< vCPUs of the host
  double memory_bytes = 0;  ///< memory of the host; 0: not stated
};

/// Two states in turn: a segment is under way, or nothing trains. begin_segment and end_segment change between them;
/// the other members that change anything may be called only while nothing trains.
class TrainingProgress {
 public:
  /// `nodes`: by pool.
  explicit TrainingProgress(std::vector<TrainingNode> nodes);

  bool under_way() const { return under_way_; }
  /// The segment under way, or the last one.
  const Segment& segment() const { return segment_; }

  /// Starts `segment`, whose since_checkpoint and checkpoint_written are set here. `same_workers`: those who trained
  /// before go on, and finish a checkpoint that they were writing.
  void begin_segment(Segment segment, bool same_workers);
  /// Replaces what was predicted of the segment under way by what was measured up to now. `steps` has the mean measured
  /// step, and must outlive this; `checkpoint_ns` is the mean time that a checkpoint took.
  void measure(const MeasuredSegment& measured, const StepDistribution& steps, double checkpoint_ns);
  /// Ends the segment at `now`, maybe in the middle of a step. `lost`: everything since the last durable checkpoint is
  /// lost; otherwise a step under way is continued by the next segment. `relative_error` is that of measured workloads.
  /// Returns the number of checkpoints that became complete.
  std::int64_t end_segment(Nanoseconds now, bool lost, double relative_error);
  /// A checkpoint was written while nothing trained: everything done so far is durable.
  void save();
  /// Nothing that was trained so far can be lost any more.
  void finish();
  /// All work since the last durable checkpoint is lost.
  void lose();

  /// Units of the target that are done at `now`, a moment of the segment under way.
  double done(Nanoseconds now) const;
  double durable() const { return durable_; }  ///< units of the target that a checkpoint holds
  double steps() const { return steps_; }      ///< steps done in ended segments, without those lost
  double images() const { return images_; }    ///< images of these steps
  /// Steps since the last durable checkpoint, up to the last segment's end.
  double since_durable() const { return since_; }
  /// Training seconds that a sudden loss would cost at `now`.
  Seconds at_risk(Nanoseconds now) const;
  /// Training time that was lost so far.
  Seconds lost() const { return Seconds{lost_s_}; }

  const TrainingAccount& account() const { return account_; }
  /// The ledger of a pool, for time in which nothing trains.
  Ledger& ledger(std::size_t pool) { return account_.ledgers[pool]; }

 private:
  using Uses = std::array<GpuNanoseconds, kGpuUseNames.size()>;
  void account_steps(double steps, double nanoseconds);
  void make_durable(double steps, double nanoseconds);

  std::vector<TrainingNode> nodes_;
  Segment segment_;
  bool under_way_ = false;
  double done_ = 0, durable_ = 0;  // in the target's unit
  double steps_ = 0, durable_steps_ = 0;
  double images_ = 0, durable_images_ = 0;
  double since_ = 0;
  double checkpoint_every_ = 0;    // of the last segment; `since_` counts towards it
  double checkpoint_written_ = 0;  // share written of the checkpoint during which the last segment ended
  double at_risk_s_ = 0, lost_s_ = 0;
  std::vector<Uses> pending_;  // by pool: time that is not yet durable
  TrainingAccount account_;
};

}  // namespace ganymede::sim
