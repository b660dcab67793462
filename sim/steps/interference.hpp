#pragma once
// The cost of a collective for the kernels that run beside it, and of a bucket for its GPU and its host.

#include "platforms/platform.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {

/// The share of compute speed that kernels lose while an all-reduce is under way, 0 to 1: the share of the GPU's
/// multiprocessors that the scheme's kernels hold, one for each of NCCL's channels. For example, 12 channels over
/// NVLink on a V100 with 80 multiprocessors: 0.15; two channels over PCIe: 0.025. Schemes other than NCCL's, and CPUs,
/// lose nothing.
double compute_share_lost(const AllReduceScheme& scheme, const Topology& topology, const platforms::Gpu& gpu);

/// Each worker's work for a bucket besides sending it.
BucketWork bucket_work(Bytes bucket, const platforms::Gpu& gpu);

}  // namespace ganymede::sim
