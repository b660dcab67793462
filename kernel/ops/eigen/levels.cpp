// Finds the compiled levels that this processor can run.

#include "kernel/ops/eigen/kernels.hpp"

namespace ganymede::kernel {

std::vector<const CpuKernels*> available_cpu_kernels() {
  std::vector<const CpuKernels*> found;
#ifdef GANYMEDE_X86_LEVELS
  __builtin_cpu_init();
  // The extensions of x86-64-v4 and -v3 that the compiler may use in the inner loops.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    found.push_back(&v4::cpu_kernels());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    found.push_back(&v3::cpu_kernels());
#endif
  found.push_back(&baseline::cpu_kernels());
  return found;
}

}  // namespace ganymede::kernel
