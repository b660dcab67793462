#pragma once
// Message by message on SimGrid's flow model, by callbacks alone: its actors and CPUs stay unused.
//
// Behaviour of SimGrid 3.32 that was measured, and how this engine avoids it:
//  - Of two flows on one link, a flow with ten times the latency on its route gets a tenth of the other's share.
//    Therefore no link here has a latency; a flow waits for the latency of its route before it starts.
//  - Cross traffic, TCP windows and correction factors change results unless they are turned off. Every such setting is
//    set explicitly.
//  - The clock of a second engine in a process continues from the first one's. Run each simulation in a child process
//    (common/process.hpp).
//  - An actor costs a context switch for each message. Flows start from timers and completion callbacks instead, in
//    SimGrid's own context: 1.3 us per message at 64 ranks, where one orchestrating actor takes 2 to 4 us.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/engine/communication_engine.hpp"

namespace ganymede::sim {

class SimGridFlows;

class SimGridMessages final : public CommunicationEngine {
 public:
  /// On flows of its own, or on those that others use too. Both arguments must outlive this.
  explicit SimGridMessages(const Network& fabric, SimGridFlows* flows = nullptr);
  ~SimGridMessages() override;
  SimGridMessages(const SimGridMessages&) = delete;
  SimGridMessages& operator=(const SimGridMessages&) = delete;

  JobTimes run(std::span<const Job> jobs, const RecordTransfer& record) override;
  /// Begins the calls of a communicator while a simulation is under way; their arrivals are on SimGrid's clock, and one
  /// that has passed is now. `finished` gets the times of each call when the last rank has left the last one; until
  /// then `communicator` must live.
  using Finished = std::function<void(std::vector<CollectiveTimes>)>;
  void start(const Communicator& communicator, Finished finished);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ganymede::sim
