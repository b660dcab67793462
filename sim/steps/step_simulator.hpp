#pragma once
// Simulates the steps of one configuration: its workers, the fabric between them, and how they keep in step.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "calibration/workload_model.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/communication.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/step_sampling.hpp"
#include "sim/steps/synchronous_step.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::sim {

class StepSimulator {
 public:
  /// `workloads` has one entry for each pool, which is empty if the pool has no node. All arguments must outlive this.
  StepSimulator(const Scenario& scenario, const Configuration& configuration,
                const std::vector<calibration::WorkloadModel>& workloads, std::uint64_t seed);

  /// Shares all-reduces that are simulated with other configurations. `cache` must outlive this.
  void share(ReductionCache& cache);
  /// The distribution of steps for one bound of the workloads, without `low` and `high`. Throws ConfigError if message
  /// fidelity would take too long or is not possible.
  StepDistribution simulate(Bound bound);

  /// The workers' part of a step, for one bound.
  struct Workers {
    WorkerModels models;
    // By pool: models of the workers that the configuration slows down; empty: there are none.
    std::vector<calibration::StepModel> slow;
    std::vector<double> slowest;     // by pool: work time of the slowest worker / mean worker
    std::vector<double> host_s;      // by pool: host seconds of one worker's mean step
    RareStalls stalls;               // taken out of the models
    std::optional<JitterTail> tail;  // set with more workers than a block has steps
  };

  /// Steps one after the other, as message fidelity draws them, whose reductions `reduce` runs. Of mode all-reduce with
  /// whole replicas only. The simulator must outlive it.
  class Live {
   public:
    Live(StepSimulator& simulator, Reduce reduce);
    /// The duration of the next step. Calls `reduce`, on a clock that begins at 0 with the first step.
    Seconds next();

   private:
    Workers workers_;
    std::unique_ptr<StepProcess> process_;
    StepSampler sampler_;
  };

 private:
  std::size_t workers() const { return layout_.pool_of.size(); }
  int batches() const { return batches_loaded(scenario_.synchronization, static_cast<int>(workers())); }
  Topology topology() const;
  std::vector<double> shares_of(const std::vector<Bytes>& variables, Bytes gradients) const;
  void connect(const calibration::StepModel& model);
  double slowest_factor(std::size_t pool, const calibration::StepModel& model) const;
  double half_width(const Workers& workers, const StepDistribution& step) const;
  Workers prepare_workers(Bound bound) const;
  std::vector<const calibration::StepModel*> model_of_each(const Workers& workers) const;
  SamplingOptions sampling_options(const Workers& workers) const;
  void check_message_count() const;

  std::unique_ptr<StepProcess> make_process(const Workers& workers);
  std::unique_ptr<StepProcess> make_component_split(const Workers& workers,
                                                    const std::vector<const calibration::StepModel*>& models) const;
  std::unique_ptr<StepProcess> make_asynchronous(const std::vector<const calibration::StepModel*>& models);
  std::unique_ptr<StepProcess> make_synchronous(const std::vector<const calibration::StepModel*>& models);
  Reduce alone_then(bool foresees, Reduce reduce);

  void add_stalls(const RareStalls& stalls, StepDistribution& out) const;
  void add_work(const Workers& workers, StepDistribution& out) const;
  void add_traffic(StepDistribution& out) const;
  void add_warnings(const Workers& workers, StepDistribution& out) const;

  const Scenario& scenario_;
  const Configuration& configuration_;
  const std::vector<calibration::WorkloadModel>& workloads_;
  std::uint64_t seed_;
  WorkerLayout layout_;
  bool message_;
  bool jitter_ = false;                           // the workloads have more than one recorded step
  std::unique_ptr<Communication> communication_;  // null: one worker alone
  std::optional<ServerRoutes> servers_;           // of asynchronous training, once its process has been made
  Reduce reduce_;                                 // of Live; empty: communication_ reduces
};

}  // namespace ganymede::sim
