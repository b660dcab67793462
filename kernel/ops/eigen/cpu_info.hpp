#pragma once
// What the system says of itself.

#include <string>

namespace ganymede::kernel {

std::string cpu_name();      ///< "AMD EPYC"; "CPU" where the system does not say
double free_memory_bytes();  ///< that it can give without swapping; 0: not known

}  // namespace ganymede::kernel
