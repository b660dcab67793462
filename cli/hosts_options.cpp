#include "cli/hosts_options.hpp"

namespace ganymede::cli {

void add_hosts(Parser command, rehearsal::HostsChoice& choice) {
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

}  // namespace ganymede::cli
