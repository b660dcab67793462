#pragma once
// Processes on SimGrid that compute on its hosts, read from its disks and communicate over its links, all on one clock.
// Each is a SimGrid actor, so that its code is written one action after the other.

#include <functional>
#include <memory>
#include <vector>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/network.hpp"

namespace ganymede::sim {

class LiveSimulation {
 public:
  /// `stores` disks can be read from. A process of the operating system may construct only one simulation; a second one
  /// throws Failure. `network` must outlive this.
  LiveSimulation(const Network& network, std::size_t stores);
  ~LiveSimulation();
  LiveSimulation(const LiveSimulation&) = delete;
  LiveSimulation& operator=(const LiveSimulation&) = delete;

  /// Starts a process on the host of an endpoint, now.
  using Process = long;
  Process spawn(int endpoint, std::function<void()> code);
  /// Ends another process, whatever it waits for. Messages of its collective under way still end, so that the schedules
  /// of that collective must live until run() returns.
  void kill(Process process);
  /// Runs until all processes have ended. Throws the first exception that one of them threw.
  void run();
  double now() const;
  /// Messages that communicate() has sent.
  double messages() const { return messages_; }

  // For the code of processes:

  void sleep_until(double at_s);
  /// Works on the process' host for so many seconds, longer if others work there too.
  void compute(double seconds);
  /// Lets the ranks of a communicator go through its calls, whose arrivals are on this clock, and waits until all are
  /// done. Throws Infeasible beyond kMaxMessages messages.
  static constexpr double kMaxMessages = 1e8;
  std::vector<CollectiveTimes> communicate(Communicator communicator);
  /// Begins to read what a store delivers in so many seconds if nobody else reads; others share its rate. wait() waits
  /// for the end and returns when it was.
  class Read;
  std::shared_ptr<Read> start_read(std::size_t store, double seconds);
  double wait(Read& read);

  /// Waits until tell() was called since the last time, or until `until_s`.
  void listen(double until_s);
  void tell();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
  double messages_ = 0;
};

}  // namespace ganymede::sim
