#pragma once
// The world of an elastic training: a policy decides how many processes train, and they train for real.

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/run_simulation.hpp"

namespace ganymede::rehearsal {

// One start of `ganymede train` as several processes, which a policy has asked for.

/// The log of a start (`ganymede.run-log/1`) so far.
struct TrainingLog {
  bool begun = false;            ///< the processes are connected and the last checkpoint is read
  std::int64_t first = 0;        ///< steps done before this start
  std::int64_t step = 0;         ///< the last step that is logged
  std::int64_t saved = 0;        ///< steps in the last checkpoint that is logged
  std::int64_t checkpoints = 0;  ///< written in this start
  double saving_s = 0;           ///< that these took
  std::string end;               ///< "finished", "stopped" or ""
  double trained_s = 0;          ///< from the begin to `step`, without pauses
};

class TrainingCrew {
 public:
  struct Files {
    std::filesystem::path log, report, errors;  ///< the log is appended to, the others are written anew
  };
  /// Starts the command, whose first word is a launcher of processes such as mpirun. Throws Failure if it cannot.
  TrainingCrew(const std::vector<std::string>& command, Files files);
  /// Ends all processes that still run.
  ~TrainingCrew();
  TrainingCrew(const TrainingCrew&) = delete;
  TrainingCrew& operator=(const TrainingCrew&) = delete;

  /// Reads what the log has gained.
  const TrainingLog& log();
  /// The launcher's exit status, 128 more than the signal that ended it; none while it runs.
  std::optional<int> ended();
  /// Asks the first process to end after the step under way and to write a checkpoint; all end with it.
  void ask_to_stop();
  /// Kills the process of that rank, if it is on this machine.
  void kill_rank(int rank);
  /// The rank that a signal has ended, as the launcher says; none: no rank was killed.
  std::optional<int> killed_rank() const;
  std::string errors() const;

 private:
  std::map<int, pid_t> ranks() const;

  Files files_;
  std::uintmax_t read_until_ = 0;  // bytes of the log
  TrainingLog log_;
  double begun_at_ = 0, paused_s_ = 0;
  pid_t launcher_ = 0;
  std::optional<int> ended_;
};

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
