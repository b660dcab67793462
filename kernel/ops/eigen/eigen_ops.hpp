#pragma once
// The CPU backend. Every build has it, and tests compare the other backends with it.

#include <memory>

#include "kernel/ops/backend.hpp"

namespace ganymede::kernel {

struct CpuKernels;

/// A backend with `threads` host threads (1 to 1024) and the fastest inner loops that this processor can run, or with
/// those given. Results do not depend on the number of threads.
std::unique_ptr<Backend> make_eigen_backend(int threads);
std::unique_ptr<Backend> make_eigen_backend(int threads, const CpuKernels& kernels);

}  // namespace ganymede::kernel
