#pragma once
// The world of an elastic training: a policy decides how many processes train, and they train for real.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rehearsal/training_crew.hpp"
#include "sim/run/run_world.hpp"

namespace ganymede::rehearsal {

struct ElasticPlan {
  const sim::Scenario* scenario = nullptr;
  double scale = 1;  ///< real seconds for one of the scenario's boots, notices and faults
  int batch = 0;     ///< images of a step of all processes together, however many they are
  /// The command that starts so many processes and writes a checkpoint so often; 0: never.
  std::function<std::vector<std::string>(int processes, std::int64_t checkpoint_every)> command;
  TrainingCrew::Files files;
};

/// One start of the training and how it ended.
struct ElasticStart {
  double at_s = 0;  ///< of the scenario
  int nodes = 0, processes = 0;
  std::int64_t from = 0, to = 0;  ///< steps done
  std::string end = {};           ///< "finished", "stopped", "rank 1 was lost"
};

/// The training was interrupted by a signal to this process, and has written a checkpoint.
struct ElasticInterrupted {
  std::int64_t step = 0;
};

/// The largest number of processes, at most `nodes`, that divide the batch; each has two images or more.
int processes_for(int nodes, int batch);

/// Nodes are counted as the scenario says; what they would compute, processes of this machine compute. Before a node
/// goes that has been announced, the training stops after a step and writes a checkpoint; of one that goes unannounced
/// the process is killed. A process that is killed by anybody else is a node that has crashed.
class TrainingWorld final : public sim::RunWorld {
 public:
  /// `plan` must outlive this.
  explicit TrainingWorld(const ElasticPlan& plan);

  bool takes(const sim::RunState& state, const sim::ScheduledEvent& event) override;
  /// Throws ElasticInterrupted.
  std::optional<sim::ScheduledEvent> next(sim::SimulationQueue& queue) override;
  void measure(sim::RunState& state) override;
  sim::Nanoseconds stop_training() override;
  void follow(const sim::RunContext& context, const sim::RunState& state) override;

  const std::vector<ElasticStart>& starts() const { return starts_; }

 private:
  sim::Nanoseconds now() const;
  void look();
  void stop_crew();
  void wait_for_end();
  void end_crew(const sim::RunState& state);
  void start_crew(const sim::RunContext& context, const sim::RunState& state);

  const ElasticPlan& plan_;
  double begin_;
  std::unique_ptr<TrainingCrew> crew_;
  TrainingLog log_;                   // of the crew
  std::vector<std::size_t> members_;  // nodes of the crew, by rank
  std::deque<sim::ScheduledEvent> happened_;
  std::multimap<double, sim::ScheduledEvent> early_;      // by moment: before these the training is stopped
  std::uint64_t followed_ = 0, pause_ = 0, segment_ = 0;  // numbers of phases
  std::int64_t checkpoints_before_ = 0;                   // of the crew, before the segment
  bool up_ = false, ended_ = false, stopping_ = false, finished_ = false;
  std::deque<sim::StepDistribution> distributions_;
  std::vector<ElasticStart> starts_;
};

}  // namespace ganymede::rehearsal
