#pragma once
// Collectives on a fabric, message by message, with SimGrid's flow model. sim/steps models what happens between
// collectives; LiveSimulation is for jobs that are actors.

#include <functional>
#include <memory>
#include <span>
#include <vector>

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

/// Processes on SimGrid that compute on its hosts, read from its disks and communicate over its links, all on one
/// clock. Each is a SimGrid actor, so that its code is written one action after the other.
class LiveSimulation {
 public:
  virtual ~LiveSimulation() = default;

  /// Starts a process on the host of an endpoint, now.
  using Process = long;
  virtual Process spawn(int endpoint, std::function<void()> code) = 0;
  /// Ends another process, whatever it waits for. Messages of its collective under way still end, so that the schedules
  /// of that collective must live until run() returns.
  virtual void kill(Process process) = 0;
  /// Runs until all processes have ended. Throws the first exception that one of them threw.
  virtual void run() = 0;
  virtual double now() const = 0;
  /// Messages that communicate() has sent.
  virtual double messages() const = 0;

  // For the code of processes:

  virtual void sleep_until(double at_s) = 0;
  /// Works on the process' host for so many seconds, longer if others work there too.
  virtual void compute(double seconds) = 0;
  /// Lets the ranks of a communicator go through its calls, whose arrivals are on this clock, and waits until all are
  /// done.
  virtual std::vector<CollectiveTimes> communicate(Communicator communicator) = 0;
  /// Begins to read what a store delivers in so many seconds if nobody else reads; others share its rate. wait() waits
  /// for the end and returns when it was.
  class Read {
   public:
    virtual ~Read() = default;
    virtual double wait() = 0;
  };
  virtual std::shared_ptr<Read> start_read(std::size_t store, double seconds) = 0;

  /// Waits until tell() was called since the last time, or until `until_s`.
  virtual void listen(double until_s) = 0;
  virtual void tell() = 0;
};

/// `stores` disks can be read from. A process of the operating system may open only one simulation; a second one
/// throws Failure. `network` must outlive it.
std::unique_ptr<LiveSimulation> open_live_simulation(const Network& network, std::size_t stores);

}  // namespace ganymede::sim
