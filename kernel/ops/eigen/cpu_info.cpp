// The operating system's report on the processor and its memory, and the compiled levels that it can run.

#include <cstdlib>
#include <fstream>

#include "kernel/ops/eigen/cpu_ops.hpp"

namespace ganymede::kernel {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

double free_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return 1024.0 * std::strtod(line.c_str() + 13, nullptr);
  return 0;
}

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
