#pragma once
// A rehearsal on one machine: processes that stand for hosts, and a network between them that is as slow as it should
// be.

#include <functional>
#include <string>

#include "rehearsal/socket_messenger.hpp"

namespace ganymede::rehearsal {

inline constexpr int kMaxLocalHosts = 64;

/// Starts `hosts` processes, calls `work` in each and returns the text of host 0. With `name_spaces` each process is in
/// a network namespace whose interface has the rate; without, its sockets on the loopback interface are paced. When
/// this returns or throws, no process and no name space is left. Throws what the first host to fail threw, or Failure
/// that names a host that died.
std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work);

}  // namespace ganymede::rehearsal
