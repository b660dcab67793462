#pragma once
// The CPU backend, which every build has and others are compared with.

#include <memory>

#include "kernel/ops.hpp"

namespace ganymede::kernel {

struct CpuKernels;

/// `threads` from 1 to 1024, with the fastest inner loops that this processor can run or those given.
std::unique_ptr<Ops> make_eigen_ops(int threads);
std::unique_ptr<Ops> make_eigen_ops(int threads, const CpuKernels& kernels);

}  // namespace ganymede::kernel
