#pragma once
// The inventory of this machine for the kernel's backends: processor, GPUs and libraries. Taking the inventory changes
// nothing, and something that is missing is reported, not an error.

#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"

namespace ganymede {

struct HostProcessor {
  std::string model;  ///< "unknown" if the system does not tell
  int cores = 0;      ///< logical processors of the machine
  int usable = 0;     ///< how many of them this process may run on
  Bytes memory;       ///< of the machine, or of the container if that has less
  Bytes available;    ///< not in use now
  bool avx2 = false, fma = false, avx512 = false;
};

/// Something a backend needs: a library that can be loaded, or a program on PATH.
struct HostDependency {
  std::string name;
  bool found = false;
  std::string detail;  ///< version or path; if it is missing, how to get it
};

struct HostGpus {
  std::vector<std::string> devices;   ///< "Tesla V100-SXM2-16GB", or the device file if no name is known
  std::optional<std::string> driver;  ///< version of the kernel module: "550.54.15"
  std::optional<std::string> cuda;    ///< newest CUDA version that the driver supports: "12.4"
};

struct HostInventory {
  HostProcessor processor;
  HostGpus graphics;
  std::vector<HostDependency> dependencies;
};

struct HostMemory {
  Bytes total;      ///< of the machine, or of the container if that has less
  Bytes available;  ///< not in use now
};
HostMemory take_host_memory();

/// The inventory as a document.
OrderedJson to_json(const HostInventory& host);

/// Takes the inventory from /proc, /sys, PATH and the libraries that the loader finds.
HostInventory take_host_inventory();

}  // namespace ganymede
