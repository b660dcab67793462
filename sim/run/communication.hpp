#pragma once
// What the steps of a run ask of the fabric.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/communication_engine.hpp"
#include "sim/run/scenario.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {

/// The gradients of a model as schedules on the fabric of a scenario's allocation, and what they load it with. One in a
/// process, as its engine is.
class Communication {
 public:
  Communication(const Scenario& scenario, const StepModel& model);

  /// Without jitter the same arrivals come back every step; `remember` simulates each pattern of arrivals once.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember);

  double messages_a_step() const { return messages_; }
  /// Seconds a step for which the busiest link is needed at its full bandwidth.
  Seconds busiest_link() const { return busiest_link_; }

 private:
  std::vector<std::vector<Seconds>> simulate(std::span<const Reduction> reductions);
  void measure_load();

  FabricGraph fabric_;
  CommunicationEngine engine_;
  std::vector<Schedule> schedules_;  // by bucket
  double messages_ = 0;              // of one step
  Seconds busiest_link_;
  std::map<std::vector<std::int64_t>, std::vector<std::vector<Seconds>>> known_;
};

}  // namespace ganymede
