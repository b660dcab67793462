#pragma once
// Averages a network's gradients over the processes of a training while its backward pass continues. Gradients are
// grouped into buckets of layers; a bucket is sent as soon as the gradients of all its layers are final.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kernel/compression.hpp"
#include "kernel/network.hpp"
#include "kernel/ops/backend.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

class BucketReducer {
 public:
  /// `network` must be prepared; it and `communicator` must outlive the reducer. Buckets are those of the step trace.
  /// The backend's reducer averages on the device; where it has none, a thread of this object does so on the host.
  BucketReducer(Network& network, Backend& backend, Communicator& communicator, Compression compression);
  ~BucketReducer();
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

  /// Tells that a layer's gradients are final. Must be called during the backward pass, for the last layer first.
  void layer_done(std::size_t layer);
  /// Waits until all gradients are the mean over the processes. Throws Failure if the communicator fails.
  void wait();
  /// Seconds spent in wait() since construction: communication that the backward pass did not hide. 0 if the device
  /// reduces, because then the host does not wait.
  double waited_s() const { return waited_s_; }

 private:
  struct Bucket {
    std::size_t first_layer;  ///< the bucket is complete when this layer is done
    std::size_t begin, end;   ///< range of the network's gradients, in floats
    PackedGradients packed = {};
  };

  void allocate_packed(TensorOps& ops);
  void work();
  void reduce(const Bucket& bucket);

  Network& network_;
  GradientReducer* on_device_;  ///< null: this object's thread reduces
  Communicator& communicator_;
  Compression compression_;
  std::vector<Bucket> buckets_;
  std::vector<float> residual_;  // what compression lost, added to the next step's gradients (int8 only)
  std::vector<float> decoded_;   // one process's bucket
  std::vector<std::uint8_t> mine_, all_;
  std::vector<Buffer> packed_;  // device memory to which the buckets refer
  double waited_s_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::size_t ready_ = 0, done_ = 0;  // buckets of this backward pass: complete, and reduced
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace ganymede::kernel
