#pragma once
// What the two engines that time collectives take and give: jobs of communicators on one fabric.
//
// CommunicationEngine (communication_engine.hpp) simulates every message with SimGrid; FoldedEngine (folded_engine.hpp)
// simulates what symmetry leaves of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/units.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede {

/// One collective: `arrivals[rank]` is when that rank of the communicator issues it.
struct CollectiveCall {
  const Schedule* schedule = nullptr;
  std::vector<Seconds> arrivals;
};

/// Ranks that call collectives in order: each takes part in all of them, and enters the next when it has finished the
/// one before and has issued it. Communicators do not wait for one another, but share the fabric's links; each adds at
/// its GPUs' whole memory bandwidth.
struct Communicator {
  std::vector<int> members;  ///< the fabric's endpoint of each endpoint of the schedules; empty: the same
  std::vector<CollectiveCall> calls;
};

/// Training jobs on one fabric; so far, always one.
struct Job {
  std::vector<Communicator> communicators;
};

struct CollectiveTimes {
  std::vector<Seconds> done;  ///< by rank, on the clock of the arrivals
  std::int64_t messages = 0;  ///< of the schedule
};

/// One message of a simulation, for timelines.
struct TransferRecord {
  std::size_t communicator = 0;  ///< counted over all jobs
  std::size_t call = 0;
  std::int64_t round = 0;
  Transfer transfer;  ///< between endpoints of the schedule
  Seconds start, end;
};
using RecordTransfer = std::function<void(const TransferRecord&)>;

/// By job, communicator and call.
using JobTimes = std::vector<std::vector<std::vector<CollectiveTimes>>>;

}  // namespace ganymede
