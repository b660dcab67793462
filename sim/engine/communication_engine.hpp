#pragma once
// Collectives on a fabric, message by message, with SimGrid's flow model. sim/steps models what happens between
// collectives; live_simulation.hpp is for jobs that are actors.

#include <memory>
#include <span>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/network.hpp"

namespace ganymede::sim {

class CommunicationEngine {
 public:
  virtual ~CommunicationEngine() = default;

  /// Runs jobs; the answer does not depend on earlier runs. Calls `record` for each message when it has arrived.
  virtual JobTimes run(std::span<const Job> jobs, const RecordTransfer& record = {}) = 0;
};

/// A process may run only one engine in its lifetime; a second one throws Failure. `fabric` must outlive it.
std::unique_ptr<CommunicationEngine> open_communication_engine(const Network& fabric);

}  // namespace ganymede::sim
