#pragma once
// Averages a network's gradients over the processes while its backward pass goes on: a bucket of layers is sent as soon
// as its last layer's gradients are final, by a thread of its own or, where the device does it, on its own stream.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kernel/compression.hpp"
#include "kernel/network.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

class Reducer {
 public:
  /// The network must be prepared and stay. Buckets are those of the step trace. Of a device that reduces by itself,
  /// without compression.
  Reducer(Network& network, Ops& ops, Communicator& communicator, Compression compression);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// From the backward pass that completes them, the last layer first.
  void layer_done(std::size_t layer);
  /// Waits until all gradients are the processes' mean. Failure of the communicator.
  void wait();
  /// Seconds that `wait` took since the beginning: communication that nothing hid. 0 where the device waits by itself.
  double waited_s() const { return waited_s_; }

 private:
  struct Bucket {
    std::size_t first_layer;  ///< complete when this one is done
    std::size_t begin, end;   ///< floats of the gradients
  };

  void work();
  void reduce(const Bucket& bucket);

  Network& network_;
  Ops& ops_;
  Communicator& communicator_;
  Compression compression_;
  std::vector<Bucket> buckets_;
  std::vector<float> lost_, decoded_;  // by compression: what the next step adds, and a process's part
  std::vector<std::uint8_t> mine_, all_;
  double waited_s_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::size_t ready_ = 0, done_ = 0;  // buckets of this pass
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace ganymede::kernel
