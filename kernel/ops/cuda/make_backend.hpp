#pragma once
// The GPU backend over a device. Whoever includes this includes the operations too (every_op.hpp), or links the sources
// that compile them for the device.

#include "kernel/ops/backend.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/packed_gradients.hpp"

namespace ganymede::kernel::cuda {

template <class Device>
class CudaGradientReducer final : public GradientReducer {
 public:
  explicit CudaGradientReducer(Timeline<Device>& timeline) : timeline_(timeline) {}

  void join(Communicator& communicator) override {
    // NCCL's documentation warns of deadlocks where one process replays graphs on several GPUs.
    if (communicator.shares_process()) timeline_.run_call_by_call();
    timeline_.device().join(communicator);
    replicas_ = communicator.shard().ranks;
  }
  void reduce(float* gradients, std::size_t count, const PackedGradients& packed) override {
    if (packed.compression == Compression::none) {
      if (timeline_.launch()) timeline_.device().reduce(gradients, count);
      return;
    }
    send_packed(timeline_, gradients, count, packed);
    sent_.push_back({gradients, count, packed});
  }
  void finish() override {
    timeline_.finish_reductions();
    for (const Sent& bucket : sent_)
      average_packed(timeline_, bucket.gradients, bucket.count, bucket.packed, replicas_);
    sent_.clear();
  }
  void leave() override { timeline_.device().leave(); }

 private:
  struct Sent {
    float* gradients;
    std::size_t count;
    PackedGradients packed;
  };

  Timeline<Device>& timeline_;
  int replicas_ = 1;
  std::vector<Sent> sent_;  ///< compressed buckets since the last finish()
};

/// The backend over `device`, which lives at least as long.
template <class Device>
std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device, const CudaOptions& options) {
  auto backend = std::make_unique<Backend>();
  backend->info = {.backend = "cuda",
                   .device = device->name(),
                   .instructions = device->instructions(),
                   .threads = 1,
                   .bus_id = device->bus_id(),
                   .precision = device->precision()};
  auto timeline = std::make_unique<Timeline<Device>>(std::move(device), options.graph);
  if (backend->info.precision == kPrecisionNames[static_cast<std::size_t>(Precision::bf16)])
    backend->ops = std::make_unique<CudaOps<Device, Bf16>>(*timeline, options.host_random);
  else
    backend->ops = std::make_unique<CudaOps<Device, float>>(*timeline, options.host_random);
  backend->gradient_reducer = std::make_unique<CudaGradientReducer<Device>>(*timeline);
  backend->timeline = std::move(timeline);
  return backend;
}

}  // namespace ganymede::kernel::cuda
