#pragma once
// Limits of messages that pass through a host: its memory where GPUs have no peer access, its sockets where the network
// is TCP. NCCL's threads and copies are slower there than the wire.

#include "sim/collectives/schedule.hpp"
#include "sim/collectives/topology.hpp"

namespace ganymede::sim {

/// The rate in one direction at which one GPU sends to another one through host memory, over PCIe of that rate: the
/// sender's kernel writes a buffer there, and the receiver's reads it.
BytesPerSecond nccl_rate_through_host(BytesPerSecond pcie);

/// The rate in one direction that NCCL's sockets reach over one NIC; of a node with several GPUs, whatever their
/// number.
BytesPerSecond nccl_socket_rate(const NcclMachine& machine, bool several_gpus);

/// `cost` with these limits, for a schedule of `lanes` lanes, and with the connections over which sockets split a
/// message. The planned messages between nodes have `rate_between` times the rate of NCCL's (nccl_pipeline.hpp).
/// `one_connection`: messages are too short to be split, as those of LL are.
ProtocolCost with_host_limits(const Topology& topology, int lanes, ProtocolCost cost, double rate_between = 1,
                              bool one_connection = false);

}  // namespace ganymede::sim
