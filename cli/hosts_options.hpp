#pragma once
// Options of commands that start processes on this machine which stand for hosts.

#include "cli/command.hpp"
#include "rehearsal/local_hosts.hpp"

namespace ganymede::cli {

/// Declares --hosts, --scale, --network and --loss.
void add_hosts(Parser command, rehearsal::HostsChoice& choice);

}  // namespace ganymede::cli
