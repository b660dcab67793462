#pragma once
// What the steps of a run ask of the fabric.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/communication_engine.hpp"
#include "sim/run/scenario.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {

/// The gradients of a model as schedules on the fabric of a scenario's allocation, and what they load it with. At
/// message fidelity one in a process, as its engine is.
class Communication {
 public:
  Communication(const Scenario& scenario, const StepModel& model);

  /// Without jitter the same arrivals come back every step; `remember` simulates each pattern of arrivals once.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);

  /// Workers that arrive at different times are not folded, and there are too many messages to simulate each:
  /// all-reduces then start at their last arrival, which can only be too late.
  bool starts_late() const { return late_; }
  double messages_a_step() const { return messages_; }
  /// Seconds a step for which the busiest link is needed at its full bandwidth.
  Seconds busiest_link() const { return busiest_link_; }

 private:
  std::vector<std::vector<Seconds>> simulate(std::span<const Reduction> reductions);
  void measure_load();

  std::vector<std::vector<Seconds>> from_last_arrival(std::span<const Reduction> reductions) const;

  FabricGraph fabric_;
  std::unique_ptr<CommunicationEngine> engine_;  // at message fidelity only
  std::vector<Schedule> schedules_;              // by bucket
  std::vector<Seconds> after_last_;  // by bucket: time from the last arrival; empty where arrivals enter the schedule
  bool late_ = false;
  double messages_ = 0;  // of one step
  Seconds busiest_link_;
  std::map<std::vector<std::int64_t>, std::vector<std::vector<Seconds>>> known_;
};

}  // namespace ganymede
