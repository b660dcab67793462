#pragma once
// The processes of a rehearsal as a group, besides the schedules: they wait for each other, agree on a clock and
// gather numbers.

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/gpu_exchange.hpp"
#include "rehearsal/execution.hpp"

namespace ganymede::rehearsal {

/// How well the ranks' clocks agree.
struct ClockAlignment {
  bool same_machine = true;  ///< all ranks read one clock, whose error is 0
  double error_s = 0;        ///< half the shortest round trip to the rank that is furthest away
};

/// All ranks must make the same calls in the same order. Each call throws Failure that says where the rank was and
/// which peers on which hosts it waited for, if nothing has arrived for kPatience seconds, if a peer's connection has
/// ended, or if a signal (SIGTERM, SIGINT) asks the process to end: a launcher sends one when a peer has died.
class Group {
 public:
  static constexpr double kPatience = 8;      ///< seconds
  static constexpr double kNap = 5e-3;        ///< seconds
  static constexpr double kSlowest = 1.25e6;  ///< bytes/s; a message may take its length over this longer
  static constexpr int kFirstFreeTag = 16;    ///< tags below are the group's own

  /// Aligns the clocks. The messenger must outlive the group.
  explicit Group(kernel::Messenger& messenger);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  kernel::Messenger& messenger() { return messenger_; }
  int rank() const { return messenger_.rank(); }
  int ranks() const { return messenger_.ranks(); }
  bool is_first() const { return rank() == 0; }
  const ClockAlignment& clock() const { return clock_; }
  std::string name_of(int rank) const;  ///< "rank 3 on node-b"
  const std::string& host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  /// Says what the rank does from now on, for errors: "step 12", "ring of 1 MiB".
  void enter(std::string place) { place_ = std::move(place); }

  double now() const;  ///< seconds on the clock of rank 0
  /// Returns at that time. With `exactly` the last moments are spent awake; what the processor was not given in time,
  /// now() tells.
  void sleep_until(double time, bool exactly = false);
  void barrier();
  /// The values of each rank at rank 0; empty elsewhere.
  std::vector<std::vector<double>> gather(std::span<const double> mine);
  /// Replaces the values of all ranks by those of rank 0.
  void broadcast(std::span<double> values);
  /// The first text that is not empty, by rank, at all ranks, as "rank 3: text"; "" if all are empty.
  std::string first_of(const std::string& text);

  /// Send or receive one message and wait for its end, with a tag below kFirstFreeTag.
  void send(std::span<const std::byte> bytes, int to, int tag);
  void receive(std::span<std::byte> bytes, int from, int tag);

  /// Drives an execution to its end.
  void finish(Execution& execution);
  /// The same for GPUs that exchange so many bytes; the rank stays awake.
  void finish(kernel::GpuExchange& exchange, std::int64_t bytes);
  /// Calls `step` until `over` is true; `step` returns whether anything happened. The rank sleeps for `nap` seconds at
  /// most between two calls.
  void drive(const std::function<bool()>& step, const std::function<bool()>& over,
             const std::function<std::string()>& where, double patience = kPatience, double nap = kNap);
  void throw_if_asked_to_end(const std::function<std::string()>& where) const;
  /// Calls `step`, which uses the messenger, and returns what it does; adds to a Failure where the rank was.
  bool attempt(const std::function<bool()>& step, const std::function<std::string()>& where) const;
  /// More ranks than processors are here: a rank that has nothing to do sleeps.
  bool is_crowded() const { return crowded_; }

 private:
  /// The bytes of each rank, equally many, one after the other in `all` of rank 0; elsewhere it is not used.
  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all);
  void broadcast_bytes(std::span<std::byte> bytes);
  void wait_for(kernel::Messenger::Message message, const char* doing, int peer);
  void align_clocks();
  void learn_hosts();
  std::string at(const std::function<std::string()>& where) const;
  double offset_of(int rank);

  kernel::Messenger& messenger_;
  double offset_ = 0;  // added to this process's clock
  bool crowded_ = false;
  ClockAlignment clock_;
  std::vector<std::string> hosts_;  // by rank; empty while they are not known
  std::string place_ = "the start";
};

}  // namespace ganymede::rehearsal
