#include "sim/steps/interference.hpp"

#include <algorithm>

#include "common/units.hpp"
#include "sim/collectives/nccl_tuner.hpp"

namespace ganymede::sim {
namespace {

/// Multiprocessors of a GPU, from NVIDIA's architecture white papers: P100 56, V100 80, A100 108, H100 132, B200 148.
double multiprocessors(NcclMachine::Generation generation) {
  switch (generation) {
    case NcclMachine::Generation::older:
      return 56;
    case NcclMachine::Generation::volta:
      return 80;
    case NcclMachine::Generation::ampere:
      return 108;
    case NcclMachine::Generation::hopper:
      return 132;
    case NcclMachine::Generation::blackwell:
      return 148;
  }
  return 80;
}

// Copying a bucket's gradients into it, divided by the number of workers, and the sums back out of it moves four bytes
// of memory for each byte (torch/csrc/distributed/c10d/reducer.cpp; Horovod's fusion buffer does the same).
constexpr double kCopiedBytesPerByte = 4;
// The share of a data sheet's memory bandwidth that copies reach: 750 of a V100's 900 GB/s (Jia et al. 2018).
constexpr double kCopyShare = 750.0 / 900.0;
// The host starts for each bucket: the copies in and out, two events, NCCL's kernel and the waits for them. A
// count of calls in reducer.cpp and ProcessGroupNCCL.cpp; each is taken to cost as much as a kernel launch.
constexpr double kLaunchesPerBucket = 8;

}  // namespace

// A persistent NCCL kernel has one thread block for each channel, and no other block runs on its multiprocessor. On
// four A100 or H100 joined by NVLink, kernels take 18.9 % longer on average, and 40 % at most, while a collective is
// under way (Lee et al., "Characterizing Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning",
// arXiv 2507.03114, 2025): a share of 0.16 on average, where 24 of 108 and 16 to 32 of 132 multiprocessors give 0.22
// and 0.12 to 0.24. Nothing is fitted to it. Memory bandwidth, which a collective takes too, would add to that for
// kernels that memory limits; it is left out.
double compute_share_lost(const AllReduceScheme& scheme, const Topology& topology, const platforms::Gpu& gpu) {
  if (!scheme.by_kernels || gpu.kind == platforms::Gpu::Kind::cpu || topology.ranks < 2) return 0;
  return std::min(0.5, nccl_channels(topology) / multiprocessors(topology.nccl.generation));
}

BucketWork bucket_work(Bytes bucket, const platforms::Gpu& gpu) {
  if (gpu.kind == platforms::Gpu::Kind::cpu) return {};
  return {.device = kCopiedBytesPerByte * bucket / (gpu.memory_bandwidth * kCopyShare),
          .host = kLaunchesPerBucket * gpu.launch};
}

}  // namespace ganymede::sim
