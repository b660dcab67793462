#pragma once
// Processes that mpirun starts in network namespaces of one machine.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/socket_messenger.hpp"

namespace ganymede::rehearsal {

/// Passes messages on, and received ones `latency` after they have come: for networks of name spaces whose kernel
/// delays nothing.
std::unique_ptr<kernel::Messenger> later_by(Seconds latency, std::unique_ptr<kernel::Messenger> inner);

/// The words of a command. `is_delayed`: the name spaces delay and lose packets, and the command need not.
using MpiCommand = std::function<std::vector<std::string>(bool is_delayed)>;

/// Runs `command` as `hosts` processes, each in a name space with an interface of the rate, by mpirun's launch agent,
/// which enters the name space in place of a remote shell; mpirun itself is in one more. Returns what they printed to
/// stdout; stderr is this program's. When this returns or throws, no process and no name space is left. Throws Failure
/// if mpirun is not there or ends with another exit status than 0, and ConfigError if that is 2 or if packets are to be
/// lost and the kernel has no netem.
std::string run_by_mpi_on_hosts(int hosts, const Shaping& shaping, const MpiCommand& command);

}  // namespace ganymede::rehearsal
