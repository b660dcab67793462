#pragma once
// What this machine offers to the kernel's backends. Looks, and changes nothing; nothing found is an answer, never an
// error.

#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

struct HostProcessor {
  std::string model;  ///< "unknown" where the system does not say
  int cores = 0;      ///< logical processors of the machine
  int usable = 0;     ///< of these, the ones this process may run on
  Bytes memory;       ///< of the machine, or of the container where that is less
  Bytes available;    ///< not in use now
  bool avx2 = false, fma = false, avx512 = false;
};

/// Something a backend needs: a library that can be loaded, or a program on PATH.
struct HostDependency {
  std::string name;
  bool found = false;
  std::string detail;  ///< version or path; where it is missing, how to get it
};

struct HostGpus {
  std::vector<std::string> devices;   ///< "Tesla V100-SXM2-16GB", or the device file where no name is given
  std::optional<std::string> driver;  ///< of the kernel module: "550.54.15"
  std::optional<std::string> cuda;    ///< the newest CUDA that the driver runs: "12.4"
};

struct HostInventory {
  HostProcessor processor;
  HostGpus graphics;
  std::vector<HostDependency> dependencies;
};

HostInventory take_host_inventory();

}  // namespace ganymede
