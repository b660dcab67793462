#include "cli/hosts_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "rehearsal/name_spaces.hpp"

namespace ganymede::cli {
namespace {

/// Bytes a second that the hosts of one machine may send together: a tenth of what two cores move through loopback, so
/// that the processor time of a message stays small beside its time on the network.
constexpr double kMostTogether = 250e6;

}  // namespace

void add_hosts(CLI::App& command, HostsChoice& choice) {
  CLI::Option* hosts =
      command
          .add_option("--hosts", choice.hosts,
                      "start the processes on this machine, each as a host with a network as slow as the platform's")
          ->check(CLI::Range(2, rehearsal::kMaxLocalHosts));
  command
      .add_option("--scale", choice.scale,
                  "with --hosts: how many times as long everything takes; default: as this machine needs")
      ->check(CLI::Range(1e-6, 1e6))
      ->needs(hosts);
  command
      .add_option("--network", choice.network,
                  "with --hosts: namespaces (root: veth pairs and token buckets) or paced (sockets that pace "
                  "themselves); default: namespaces where they can be made")
      ->check(CLI::IsMember({"namespaces", "paced"}))
      ->needs(hosts);
}

bool choose_name_spaces(const HostsChoice& choice, const Shared& shared) {
  if (choice.network == "paced") return false;
  const std::string why_not = rehearsal::why_no_name_spaces();
  if (!why_not.empty()) {
    if (choice.network == "namespaces") throw ConfigError("--network namespaces: " + why_not + "; expected paced here");
    remark(shared, "note: " + why_not + ": sockets are paced in place of network namespaces\n");
    return false;
  }
  if (const int removed = rehearsal::remove_left_over_name_spaces(); removed > 0)
    remark(shared, fmt::format("note: removed {} network namespaces that a run before had left\n", removed));
  return true;
}

double slowest_scale(BytesPerSecond rate, int hosts) {
  return std::max(1.0, std::ceil(rate.si * hosts / kMostTogether));
}

HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Shared& shared) {
  if (fabric.ranks() != choice.hosts || fabric.topology().nodes() != choice.hosts)
    throw ConfigError(fmt::format("--hosts {}: found {} GPUs on {} nodes, expected {} nodes with one GPU each",
                                  choice.hosts, fabric.ranks(), fabric.topology().nodes(), choice.hosts));
  HostsNetwork network{.stated = rehearsal::stated_ping(fabric)};
  if (choice.scale > 0 && choice.scale < 1)
    throw ConfigError(fmt::format("--scale {}: expected 1 or more, except with --life", choice.scale));
  network.scale = choice.scale > 0 ? choice.scale : slowest_scale(network.stated.rate, choice.hosts);
  network.stated.rate *= 1 / network.scale;
  network.stated.latency *= network.scale;
  network.stated.adding *= 1 / network.scale;
  network.name_spaces = choose_name_spaces(choice, shared);
  return network;
}

std::string run_on(const HostsChoice& choice, const HostsNetwork& network,
                   const std::function<std::string(kernel::Messenger&)>& work) {
  return rehearsal::run_on_hosts(choice.hosts, {network.stated.rate, network.stated.latency}, network.name_spaces,
                                 work);
}

}  // namespace ganymede::cli
