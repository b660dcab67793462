#include "kernel/ops/eigen/cpu_info.hpp"

#include <cstdlib>
#include <fstream>

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

}  // namespace ganymede::kernel
