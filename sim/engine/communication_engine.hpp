#pragma once
// Collectives on a fabric, message by message, with SimGrid's flow model. Everything else that SimGrid offers (actors,
// CPUs) stays unused: what happens between collectives is sim/step's business.
//
// How it avoids what SimGrid 3.32 was measured to do otherwise:
//  - Of two flows on one link, the one with ten times the latency on its way gets a tenth of the other's share. So no
//    link here has any latency; a flow waits out the latency of its route before it is started.
//  - Cross traffic, TCP windows and correction factors change results unless they are turned off: each is set, none is
//    left to its default.
//  - The clock of a second engine in one process goes on where the first one's stopped. Run each simulation in a child
//    process (common/process.hpp).
//  - An actor costs a context switch a message. Flows are started from timers and completion callbacks instead, in
//    SimGrid's own context: 1.3 us a message at 64 ranks, where one orchestrating actor takes 2 to 4.

#include <memory>
#include <span>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede {

class CommunicationEngine {
 public:
  /// At most one in a process's life. Failure if there was one already.
  explicit CommunicationEngine(const FabricGraph& fabric);
  ~CommunicationEngine();
  CommunicationEngine(const CommunicationEngine&) = delete;
  CommunicationEngine& operator=(const CommunicationEngine&) = delete;

  /// Independent of what ran earlier. `record` is called once a message, when it has arrived.
  JobTimes run(std::span<const Job> jobs, const RecordTransfer& record = {});

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ganymede
