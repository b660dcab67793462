#pragma once
// The machine that a log of nccl-tests is of: from what the log and the user say of it.

#include <string>

#include "platforms/platform.hpp"
#include "studies/logged_collective.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::studies {

/// What a user says of the machine; all may be "".
struct MachineHints {
  std::string catalog, overlay, instance;
  std::string gpu;  ///< "A100-80GB", in place of the name that the log has
  std::string nic;  ///< "8x200Gbit/s": RDMA NICs of a node, in place of the instance's
};

struct LoggedMachine {
  platforms::Platform platform;
  platforms::Instance instance;
  std::string catalog;
  std::string how;  ///< how it was found, a sentence's part
};

/// Finds the machine in the catalogs that come with the program, or in the named one. `text` is the whole log, in which
/// NCCL may name its network. Throws ConfigError that says what is needed if no machine or several unlike ones may be
/// meant.
LoggedMachine logged_machine(const traces::NcclLog& log, const std::string& text, const MachineHints& hints,
                             const LogOptions& options);

}  // namespace ganymede::studies
