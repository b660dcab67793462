#pragma once
// Replicas that are threads of one process, one a GPU: what they tell each other passes through shared memory.

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

  /// Of the thread that is replica `rank`; the group must outlive it.
  std::unique_ptr<Communicator> member(int rank);
  /// One has failed: whoever waits for it, now or later, gets a Failure.
  void abandon();

  /// work(communicator) as each of `ranks` replicas, the first in this thread. Throws the first error of any.
  static void run(int ranks, const std::function<void(Communicator&)>& work);

 private:
  class Member;

  /// Where the threads meet. Calls of gradients go on beside the others: they have a place of their own.
  struct Place {
    std::mutex mutex;
    std::condition_variable all_there;
    int arrived = 0;
    std::uint64_t meeting = 0;
    bool abandoned = false;
    std::vector<std::span<double>> doubles;
    std::vector<std::span<float>> floats;
    std::vector<std::span<const std::uint8_t>> bytes;
  };
  void meet(Place& place) const;
  /// Each value becomes the sum over the ranks, in their order.
  template <class Value>
  void sum(Place& place, std::vector<std::span<Value>>& given, int rank, std::span<Value> values) const;

  int ranks_;
  Place values_, gradients_;
};

}  // namespace ganymede::kernel
