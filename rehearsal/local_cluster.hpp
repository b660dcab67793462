#pragma once
// The cluster of a rehearsed life: processes of this machine do for real, and measure, what a simulation takes to
// happen on its nodes.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/life_workers.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::rehearsal {

/// How a scenario's life is played here.
struct LifePlan {
  const sim::Scenario* scenario = nullptr;
  int hosts = 0;         ///< nodes that can exist at once
  double scale = 1;      ///< real seconds for one of the scenario
  double fold = 1;       ///< steps of the scenario for which one that is played stands; it lasts as long as they do
  Shaping shaping = {};  ///< of a NIC, by the time of a played step
  bool name_spaces = false;
  double margin_s = 0;   ///< real seconds by which a checkpoint on notice begins before the last moment
  double longest_s = 0;  ///< real seconds after which the life is given up
  std::map<int, StepsOfWorkers> steps = {};  ///< by number of workers

  /// Real seconds of a played step for one second of a step of the scenario.
  double step_scale() const { return scale * fold; }
};

/// Numbers about what was really done.
struct LifeFacts {
  int nodes_started = 0, nodes_killed = 0, notices_heard = 0, starts = 0, checkpoints_written = 0, checkpoints_read = 0;
  std::int64_t steps_played = 0;
  double late_s = 0;  ///< the latest that something happened after it was due, in real seconds
};

/// Time passes with the machine's clock from the construction on. Boots, starts of the training program, steps,
/// checkpoints and evaluations end when real processes have done them. All else happens when the simulation would have
/// it happen: the provider's answers and notices, losses, faults and reviews of the policy.
class LocalCluster final : public sim::RunWorld {
 public:
  /// `plan` must outlive this.
  explicit LocalCluster(const LifePlan& plan);
  ~LocalCluster() override;

  bool takes(const sim::RunState& state, const sim::ScheduledEvent& event) override;
  std::optional<sim::ScheduledEvent> next(sim::SimulationQueue& queue) override;
  void measure(sim::RunState& state) override;
  sim::Nanoseconds stop_training() override;
  void follow(const sim::RunContext& context, const sim::RunState& state) override;

  LifeFacts facts() const;

 private:
  struct Host {
    pid_t process = 0;
    int slot = 0;
    bool ready = false, noticed = false;
    bool lost = false;  ///< its process has died by itself
  };
  /// The segment under way, counted in steps that the workers play.
  struct Stretch {
    std::uint64_t phase = 0;      ///< of the segment; 0: none is under way
    std::int64_t first = 0;       ///< steps of the workers before it
    double steps_each = 1;        ///< steps of the scenario for each that is played
    LifeBoard::Saved saved;       ///< checkpoints of the workers before it
    std::int64_t done = 0;        ///< steps of the workers when it was last measured
    LifeBoard::Saved done_saved;  ///< checkpoints of the workers then
    sim::StepDistribution* measured = nullptr;
    std::int64_t read = 0;  ///< steps of the workers of which `parts` are known
    StepParts parts = {};   ///< of the mean step so far
  };

  sim::Nanoseconds now() const;
  double moment(sim::Nanoseconds time) const;
  void follow_nodes(const sim::RunState& state);
  void start_host(std::size_t node);
  void end_host(std::size_t node);
  int free_slot() const;
  void start_workers(const sim::RunState& state);
  void retire_workers();
  StepParts parts_until(std::int64_t done);
  void begin_stretch(const sim::RunContext& context, const sim::RunState& state);
  void set_pace(const sim::RunContext& context, const sim::RunState& state);
  void start_task(const sim::RunState& state);
  void end_task();
  bool same_members(const sim::RunState& state) const;
  void look_at_processes();
  void hear(const Wake& wake);
  void check_workers();
  void throw_if_over() const;

  const LifePlan& plan_;
  double begin_;  // moment of the request, on the machine's clock
  WakePipe pipe_;
  LifeCheckpoint checkpoint_;
  std::optional<NameSpaces> spaces_;
  std::map<std::size_t, Host> nodes_;          // by index in the fleet
  std::map<std::size_t, double> boots_until_;  // moments, of granted nodes that have no process yet
  std::deque<sim::ScheduledEvent> happened_;
  std::multimap<double, sim::ScheduledEvent> early_;  // by moment: what must begin before its scheduled time
  std::uint64_t followed_ = 0;                        // number of the phase that the processes do
  std::uint64_t pause_ = 0;                           // number of the phase whose pause is under way; 0: none is
  double segment_steps_ = 0;                          // of the segment that was scheduled last
  std::unique_ptr<Workers> workers_;
  std::vector<std::size_t> members_;  // of the workers, by rank
  bool workers_ready_ = false, workers_ended_ = false, stopping_ = false;
  double trouble_since_ = 0;  // when a worker failed, whose node may be about to; 0: none did
  std::string trouble_;
  Stretch stretch_;
  pid_t task_ = 0;
  double network_ = 1;  // share of the rate that is left
  std::deque<sim::StepDistribution> distributions_;
  LifeFacts facts_;
};

}  // namespace ganymede::rehearsal
