#pragma once
// Replicas of a training that are threads of one process, one for each GPU. They communicate through shared memory.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks);

  /// The communicator of replica `rank`, for its thread; the group must outlive it.
  std::unique_ptr<Communicator> member(int rank);
  /// Tells that a replica has failed. Replicas that wait for it, now or later, throw Failure.
  void abandon();

  /// Calls work(communicator) for each of `ranks` replicas, the first in this thread, the others in threads of their
  /// own. Throws the first error of any of them.
  static void run(int ranks, const std::function<void(Communicator&)>& work);

 private:
  class Member;

  /// A barrier and the data that the threads exchange at it. Calls for gradients run concurrently with the others, so
  /// they have an exchange of their own.
  struct Exchange {
    std::mutex mutex;
    std::condition_variable complete;
    int arrived = 0;
    std::uint64_t round = 0;
    bool abandoned = false;
    std::vector<std::span<double>> doubles;
    std::vector<std::span<float>> floats;
    std::vector<std::span<const std::uint8_t>> bytes;
  };
  /// Waits until all ranks have arrived. Throws Failure if the group is abandoned.
  void wait_for_all(Exchange& exchange) const;
  /// Replaces each value by the sum over the ranks, added in their order.
  template <class Value>
  void sum(Exchange& exchange, std::vector<std::span<Value>>& given, int rank, std::span<Value> values) const;

  int ranks_;
  Exchange values_, gradients_;
};

}  // namespace ganymede::kernel
