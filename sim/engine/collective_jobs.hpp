#pragma once
// The input and the output of both engines that time collectives: jobs of communicators on one fabric.
//
// CommunicationEngine (communication_engine.hpp) simulates every message with SimGrid; run_folded (folded_engine.hpp)
// simulates one message of each class of like ones.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/units.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede::sim {

/// One collective.
struct CollectiveCall {
  const Schedule* schedule = nullptr;
  std::vector<Seconds> arrivals;  ///< when each rank of the communicator issues the call
};

/// Ranks that call collectives in order. Each rank takes part in all calls, and enters the next one when it has
/// finished the one before and has issued the next. Communicators do not wait for one another but share the fabric's
/// links; each adds at the whole memory bandwidth of its GPUs.
struct Communicator {
  /// The fabric's endpoint for each endpoint of the schedules; empty: endpoint i of a schedule is endpoint i of the
  /// fabric.
  std::vector<int> members;
  std::vector<CollectiveCall> calls;
};

/// A training job on a fabric. All callers now run one job at a time.
struct Job {
  std::vector<Communicator> communicators;
};

struct CollectiveTimes {
  std::vector<Seconds> done;  ///< when each rank is done, on the clock of the arrivals
  std::int64_t messages = 0;  ///< number of messages in the whole schedule, simulated or not
};

/// One message of a simulation, for timelines.
struct TransferRecord {
  std::size_t communicator = 0;  ///< index over all jobs
  std::size_t call = 0;
  std::int64_t round = 0;
  Transfer transfer;  ///< between endpoints of the schedule
  Seconds start, end;
};
using RecordTransfer = std::function<void(const TransferRecord&)>;

/// Times by job, communicator and call.
using JobTimes = std::vector<std::vector<std::vector<CollectiveTimes>>>;

}  // namespace ganymede::sim
