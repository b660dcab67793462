// A GPU as one rank of an NCCL communicator.

#include <exception>
#include <thread>

#include "kernel/ops/cuda/gpu_device.hpp"

namespace ganymede::kernel::cuda {

void GpuDevice::join(Communicator& communicator) {
  const Shard shard = communicator.shard();
  ncclUniqueId id{};
  if (shard.rank == 0) GANYMEDE_CUDA(ncclGetUniqueId(&id));
  std::vector<std::uint8_t> all(sizeof id * static_cast<std::size_t>(shard.ranks));
  communicator.gather_gradients({reinterpret_cast<const std::uint8_t*>(&id), sizeof id}, all);
  std::memcpy(&id, all.data(), sizeof id);  // the id of the first replica
  reductions_ = make_stream();
  computed_ = make_event();
  reduced_ = make_event();
  communicator_ = &communicator;
  // With a communicator that blocks, this replica would wait for ever for one that fails before it comes here.
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  settle(ncclCommInitRankConfig(&nccl_, shard.ranks, id, shard.rank, &config));
}

void GpuDevice::begin_reduction() {
  GANYMEDE_CUDA(cudaEventRecord(computed_.get(), stream_.get()));
  GANYMEDE_CUDA(cudaStreamWaitEvent(reductions_.get(), computed_.get(), 0));
}

void GpuDevice::gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t bytes) {
  begin_reduction();
  settle(ncclAllGather(mine, all, bytes, ncclUint8, nccl_, reductions_.get()));
}

void GpuDevice::reduce(float* gradients, std::size_t count) {
  begin_reduction();
  settle(ncclAllReduce(gradients, gradients, count, ncclFloat, ncclAvg, nccl_, reductions_.get()));
}

void GpuDevice::finish_reductions() {
  GANYMEDE_CUDA(cudaEventRecord(reduced_.get(), reductions_.get()));
  GANYMEDE_CUDA(cudaStreamWaitEvent(stream_.get(), reduced_.get(), 0));
}

void GpuDevice::settle(ncclResult_t state) {
  for (; state == ncclInProgress; std::this_thread::yield()) {
    check_replicas();
    GANYMEDE_CUDA(ncclCommGetAsyncError(nccl_, &state));
  }
  check(state, "an operation of NCCL", __FILE__, __LINE__);
}

void GpuDevice::check_replicas() {
  ncclResult_t state = ncclSuccess;
  GANYMEDE_CUDA(ncclCommGetAsyncError(nccl_, &state));
  if (state != ncclInProgress) check(state, "an earlier operation of NCCL", __FILE__, __LINE__);
  if (!communicator_->abandoned()) return;
  abort_replica();
  throw Failure("another replica has failed");
}

void GpuDevice::abort_replica() noexcept {
  // NCCL waits until no graph refers to the communicator, even to abort it.
  discard_capture();
  ncclCommAbort(std::exchange(nccl_, nullptr));
}

void GpuDevice::leave() noexcept {
  if (nccl_ == nullptr) return;
  try {
    // This replica has failed, so that others may never come to the reductions that it has begun.
    if (std::uncaught_exceptions() > exceptions_) return abort_replica();
    synchronize();
    discard_capture();
    settle(ncclCommFinalize(nccl_));
    ncclCommDestroy(std::exchange(nccl_, nullptr));
  } catch (const std::exception&) {
    if (nccl_ != nullptr) abort_replica();
  }
}

}  // namespace ganymede::kernel::cuda
