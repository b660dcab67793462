#pragma once
// What the operating system reports about the processor and its memory.

#include <string>

namespace ganymede::kernel {

std::string cpu_name();      ///< for example "AMD EPYC"; "CPU" if the system does not report one
double free_memory_bytes();  ///< bytes available without swapping; 0: not known

}  // namespace ganymede::kernel
