#include "cli/hosts_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/name_spaces.hpp"

namespace ganymede::cli {
namespace {

/// Bytes a second that the hosts of one machine may send together: a tenth of what two cores move through loopback, so
/// that the processor time of a message stays small beside its time on the network.
constexpr double kMostTogether = 250e6;
/// Seconds that a message may be under way: much less than what a rank waits for another before it gives up.
constexpr double kLongestLatency = rehearsal::Group::kPatience / 8;

}  // namespace

void add_hosts(Parser command, HostsChoice& choice) {
  Option hosts =
      command
          .add_option("--hosts", choice.hosts,
                      "start the processes on this machine, each as a host with a network as slow as the platform's")
          .check(integer_between(2, rehearsal::kMaxLocalHosts));
  command
      .add_option("--scale", choice.scale,
                  "with --hosts: how many times as long everything takes; default: as this machine needs")
      .check(number_between(1e-6, 1e6))
      .needs(hosts);
  command
      .add_option(
          "--network", choice.network,
          "with --hosts: namespaces (root: veth pairs and token buckets), paced (sockets that pace themselves) "
          "or mpirun (name spaces, in which mpirun starts the processes); default: namespaces where they can be "
          "made")
      .check(one_of({"namespaces", "paced", "mpirun"}))
      .needs(hosts);
  command
      .add_option(
          "--loss", choice.loss,
          "with --hosts: the share of packets that are lost and sent again, for example 0.001; predictions know "
          "nothing of it")
      .check(number_between(0.0, 0.5))
      .needs(hosts);
}

void refuse_mpirun(const HostsChoice& choice) {
  if (choice.network == "mpirun")
    throw ConfigError("--network: found mpirun, expected namespaces or paced except for the steps of `rehearse`");
}

bool choose_name_spaces(const HostsChoice& choice, const Shared& shared) {
  if (choice.network == "paced") return false;
  const std::string why_not = rehearsal::why_no_name_spaces();
  if (!why_not.empty()) {
    if (!choice.network.empty())
      throw ConfigError(fmt::format("--network {}: {}; expected paced here", choice.network, why_not));
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

rehearsal::Ping scaled(const rehearsal::Ping& ping, double scale) {
  return {.rate = ping.rate * (1 / scale), .latency = ping.latency * scale, .adding = ping.adding * (1 / scale)};
}

HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Shared& shared) {
  if (fabric.ranks() != choice.hosts || fabric.topology().nodes() != choice.hosts)
    throw ConfigError(fmt::format("--hosts {}: found {} GPUs on {} nodes, expected {} nodes with one GPU each",
                                  choice.hosts, fabric.ranks(), fabric.topology().nodes(), choice.hosts));
  HostsNetwork network{.stated = rehearsal::stated_ping(fabric)};
  if (choice.scale > 0 && choice.scale < 1)
    throw ConfigError(fmt::format("--scale {}: expected 1 or more, except with --life", choice.scale));
  network.scale = choice.scale > 0 ? choice.scale : slowest_scale(network.stated.rate, choice.hosts);
  if (const Seconds once = network.stated.latency; once.si * network.scale > kLongestLatency)
    throw ConfigError(fmt::format(
        "--scale {:g}: a message would be {} under way, expected {} at most: a scale of {:.0f}", network.scale,
        to_string(once * network.scale), to_string(Seconds{kLongestLatency}), std::floor(kLongestLatency / once.si)));
  network.stated = scaled(network.stated, network.scale);
  network.name_spaces = choose_name_spaces(choice, shared);
  return network;
}

std::string run_on(const HostsChoice& choice, const HostsNetwork& network,
                   const std::function<std::string(kernel::Messenger&)>& work) {
  refuse_mpirun(choice);
  return rehearsal::run_on_hosts(choice.hosts, {network.stated.rate, network.stated.latency, choice.loss},
                                 network.name_spaces, work);
}

}  // namespace ganymede::cli
