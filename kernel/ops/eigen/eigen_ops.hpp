#pragma once
// The CPU backend: the reference, and the default where there is no GPU.

#include <memory>

#include "kernel/ops.hpp"

namespace ganymede::kernel {

/// How many threads this process may use: its affinity, not the machine's size.
int available_threads();

struct CpuKernels;

/// `threads` from 1 to 1024, with the fastest inner loops that this processor can run or those given.
std::unique_ptr<Ops> make_eigen_ops(int threads);
std::unique_ptr<Ops> make_eigen_ops(int threads, const CpuKernels& kernels);

}  // namespace ganymede::kernel
