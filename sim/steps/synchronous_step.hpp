#pragma once
// Synchronous data-parallel steps of several workers: a max-plus walk over their phases. The caller says how long a
// collective takes, by simulating it or by a formula; nothing here knows the fabric.

#include <functional>
#include <span>
#include <vector>

#include "calibration/step_model.hpp"
#include "common/units.hpp"
#include "sim/collectives/topology.hpp"
#include "sim/steps/step_process.hpp"

namespace ganymede::sim {

/// One all-reduce to run: a bucket, and when each worker issues it.
struct Reduction {
  std::size_t bucket = 0;         ///< Index into StepModel::buckets.
  std::vector<Seconds> arrivals;  ///< One entry for each worker.
};

/// Runs reductions of one communicator in order and returns when each is done: [reduction][worker], on the clock of the
/// arrivals.
using Reduce = std::function<std::vector<std::vector<Seconds>>(std::span<const Reduction>)>;

/// A worker's work for a bucket besides sending it.
struct BucketWork {
  Seconds device;  ///< Copies into the bucket and out of it.
  Seconds host;    ///< Calls that start them and the collective.
};

struct SynchronousOptions {
  /// True: a bucket is reduced as soon as it is ready. False: all buckets of a network are reduced when its backward
  /// pass has ended.
  bool overlap = true;
  int prefetch_depth = 2;  ///< Number of batches that the input pipeline prepares ahead.
  /// Number of slowest workers that a step does not wait for; their gradients of this step are dropped (Chen et al.,
  /// "Revisiting Distributed Synchronous SGD", 2016).
  int backup_workers = 0;
  /// Share of compute speed that kernels lose while a reduction is under way on their GPU.
  double interference = 0;
  std::vector<BucketWork> bucket_work{};  ///< By bucket; empty: buckets cost nothing but their reduction.
};

/// For each bucket the index of the phase before which its reduction must be done; the number of phases: before the end
/// of the step.
std::vector<std::size_t> phases_that_wait(const calibration::StepModel& model, bool overlap);

/// A worker's input pipeline: when each stage is free, and the batches that it has worked ahead.
class InputPipeline {
 public:
  InputPipeline(std::size_t phases, int prefetch_depth);
  /// When the worker, which asks at `start`, has its next batch. `stage` is called with each stage's phase, begin and
  /// end.
  Seconds next_batch(const calibration::StepModel& model, std::size_t row, Seconds start,
                     const std::function<void(const calibration::StepPhase&, Seconds, Seconds)>& stage = {});

 private:
  std::vector<Seconds> stage_free_;
  std::vector<Seconds> taken_;  // when each of the last prefetch_depth batches was taken, as a ring
  std::size_t batches_ = 0;
};

/// The mode `all-reduce`. A network's reductions must be done before the network's next phase (its update), or by the
/// end of the step if there is none; without overlap, before the phase that comes next. Workers start a step together,
/// when the slowest has ended the previous one.
class SynchronousStep : public StepProcess {
 public:
  /// Workers that are alike. `model` must outlive this; `reduce` may be empty for one worker. Precondition:
  /// topology.ranks >= 1.
  SynchronousStep(const calibration::StepModel& model, const Topology& topology, const SynchronousOptions& options,
                  Reduce reduce);
  /// Workers that differ: each has a model of its own, with the same phases and buckets and with other times. All
  /// models must outlive this.
  SynchronousStep(std::vector<const calibration::StepModel*> models, const Topology& topology,
                  const SynchronousOptions& options, Reduce reduce);

  StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) override;

 private:
  /// A reduction that was simulated and that the workers will still wait for.
  struct Running {
    std::size_t bucket;
    std::vector<Seconds> arrivals, ends;  // by worker
  };

  Seconds next_batch(std::size_t worker, std::size_t row, Seconds start);
  void run_phase(std::size_t phase, std::span<const std::size_t> rows);
  void start_reductions();
  void slow_kernels(const std::vector<std::vector<Seconds>>& ends);
  void show_reductions(const std::vector<std::vector<Seconds>>& ends) const;
  Seconds end_step(std::span<const std::size_t> rows);
  void wait_for_reductions(std::size_t first_waiting_phase);

  std::vector<const calibration::StepModel*> models_;  // by worker
  const calibration::StepModel& model_;  // the first worker's; all models have the same phases and buckets
  std::vector<std::size_t> node_of_;     // by worker
  Topology topology_;
  SynchronousOptions options_;
  Reduce reduce_;
  std::vector<std::size_t> wait_before_;  // by bucket: the phase before which it must be done; phases.size(): the end
  std::vector<InputPipeline> inputs_;
  Seconds now_;  // end of the step before

  // State of the step under way.
  std::vector<Seconds> clock_;      // by worker
  std::vector<Seconds> host_free_;  // by node
  std::vector<WorkerStep> parts_;   // by worker
  std::vector<Reduction> pending_;  // issued, not yet simulated
  std::vector<Running> running_;
};

}  // namespace ganymede::sim
