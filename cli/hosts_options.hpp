#pragma once
// Options of commands that start processes on this machine which stand for hosts.

#include <functional>
#include <string>

#include "cli/command.hpp"
#include "rehearsal/local_hosts.hpp"
#include "rehearsal/ping.hpp"

namespace ganymede::cli {

struct HostsChoice {
  int hosts = 0;     ///< 0: a launcher has started the processes
  double scale = 0;  ///< how many times as long everything takes; 0: as long as this machine needs
  std::string network;
  double loss = 0;  ///< share of packets that are lost
};

/// Declares --hosts, --scale, --network and --loss.
void add_hosts(Parser command, HostsChoice& choice);

/// The network between the hosts of a fabric, at a scale that this machine can follow.
struct HostsNetwork {
  double scale = 1;
  bool name_spaces = false;
  rehearsal::Ping stated;  ///< the fabric's, `scale` times as slow
};
/// A network on which everything takes `scale` times as long.
rehearsal::Ping scaled(const rehearsal::Ping& ping, double scale);
/// Throws ConfigError if the fabric's ranks are not as many nodes as --hosts says, or if the network asked for cannot
/// be made here. Removes name spaces that are left over, and says so.
HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Shared& shared);

/// How many times as long as on the platform a message takes at least here, if `hosts` NICs of that rate send together.
double slowest_scale(BytesPerSecond rate, int hosts);
/// Whether the network is one of name spaces. Throws ConfigError if they are asked for and cannot be made; removes
/// those that are left over, and says so.
bool choose_name_spaces(const HostsChoice& choice, const Shared& shared);

/// Throws ConfigError for `--network mpirun`.
void refuse_mpirun(const HostsChoice& choice);

/// Calls `work` in a process for each host and returns the text of host 0.
std::string run_on(const HostsChoice& choice, const HostsNetwork& network,
                   const std::function<std::string(kernel::Messenger&)>& work);

}  // namespace ganymede::cli
