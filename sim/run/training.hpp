#pragma once
// The steps of a run between two changes, what of them is durable, and where their GPU time goes. Work that is not yet
// durable is kept apart, because a sudden loss turns it into lost time.

#include <array>
#include <vector>

#include "sim/ledger/ledger.hpp"
#include "sim/run/hazards.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede {

/// Steps of one configuration from `start` on, with checkpoints in between, in whose writing everybody waits.
struct Segment {
  Nanoseconds start = 0;
  const StepDistribution* steps = nullptr;
  Configuration configuration;
  double step_ns = 1;
  double per_step = 1;  ///< units of the target that a step trains
  double every = 0;     ///< steps between two checkpoints; 0: none are written
  double since = 0;     ///< steps since the last one, at `start`
  double write_ns = 0;  ///< of one checkpoint
  double written = 0;   ///< share of the first one that is written at `start` already

  struct Place {
    double steps = 0;
    std::int64_t checkpoints = 0;  ///< complete
    double writing_ns = 0;         ///< of one that is under way
  };
  Place at(Nanoseconds now) const;
  /// When so many steps are done.
  Nanoseconds time_of(double steps) const;
  /// Steps up to the last complete checkpoint of so many.
  double durable_steps(std::int64_t checkpoints) const {
    return (every > since ? every - since : 0) + static_cast<double>(checkpoints - 1) * every;
  }
};

/// What a run's error is made of, summed over its segments.
struct RunError {
  double sampling_s = 0;         ///< half-width of the mean steps' sampling, times their number
  double own_s2 = 0;             ///< variance of this run's own steps
  double measured_s = 0;         ///< time under measured workloads times their relative error
  double low_s = 0, high_s = 0;  ///< what transferred workloads may be shorter and longer
};

/// Sums over all steps that were trained, those lost later included.
struct StepTotals {
  double steps = 0, training_s = 0;
  double device_s = 0, host_s = 0, flops = 0, link_s = 0;
  double between_bytes = 0;
  double reads = 0;                                      ///< requests to the dataset's storage
  double stale_steps = 0;                                ///< staleness times steps
  double vcpu_s = 0, vcpu_reserved_s = 0;                ///< of the nodes that trained
  double memory_byte_s = 0, memory_reserved_byte_s = 0;  ///< of their hosts
  std::int64_t checkpoints = 0;
};

class Training {
 public:
  explicit Training(const Scenario& scenario);

  bool under_way() const { return under_way_; }
  const Segment& segment() const { return segment_; }
  /// `goes_on`: those who trained before do so still, and finish a checkpoint that they were writing.
  void begin(Segment segment, bool goes_on);
  /// Ends the segment at `now`: in the middle of a step (`lost` false: it is finished elsewhere; true: everything since
  /// the last durable checkpoint is lost). Returns the number of checkpoints that became complete.
  std::int64_t cut(Nanoseconds now, bool lost, double relative_error);
  /// What was done becomes durable now, by a checkpoint written while nobody trained.
  void save();
  /// The run has reached its target: nothing can be lost any more.
  void finish();
  /// All work since the last durable checkpoint is lost, between segments.
  void lose();

  /// Of the target: at a moment of the segment under way, or now.
  double done(Nanoseconds now) const;
  double durable() const { return durable_; }
  double steps() const { return steps_; }            ///< that count: not those that were lost
  double images() const { return images_; }          ///< likewise
  double since_durable() const { return since_; }    ///< steps since the last durable checkpoint, between segments
  Seconds lost() const { return Seconds{lost_s_}; }  ///< training time that was lost
  const StepTotals& totals() const { return totals_; }
  const RunError& error() const { return error_; }
  double device_s(std::size_t pool) const { return device_s_[pool]; }
  /// Training seconds that a sudden loss would cost now.
  Seconds at_risk(Nanoseconds now) const;

  Ledger& ledger(std::size_t pool) { return ledgers_[pool]; }

 private:
  using Account = std::array<GpuNanoseconds, kGpuUseNames.size()>;
  void account(double steps, double nanoseconds, std::vector<Account>& into) const;
  void settle(std::vector<Account>& accounts);

  const Scenario& scenario_;
  Segment segment_;
  bool under_way_ = false;
  double done_ = 0, durable_ = 0;
  double steps_ = 0, durable_steps_ = 0;
  double images_ = 0, durable_images_ = 0;
  double since_ = 0;
  double every_ = 0;    // steps between two checkpoints that `since_` is counted against
  double written_ = 0;  // share of a checkpoint that the last segment ended in
  double at_risk_s_ = 0, lost_s_ = 0;
  std::vector<Account> pending_;  // by pool
  std::vector<Ledger> ledgers_;
  std::vector<double> device_s_;
  StepTotals totals_;
  RunError error_;
};

}  // namespace ganymede
