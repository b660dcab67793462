#pragma once
// A network as it is measured: a message between two ranks, and the fabric that the simulator takes from it.

#include "platforms/platform.hpp"
#include "rehearsal/group.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::rehearsal {

struct Ping {
  BytesPerSecond rate;    ///< of a message from rank 0 to rank 1
  Seconds latency;        ///< of such a message of no length
  BytesPerSecond adding;  ///< memory traffic of a processor that adds floats (kMemoryBytesPerReducedByte)
  Seconds message{0};     ///< processor time of a rank that sends a small message and receives one
};

/// Exchanges small and larger messages between ranks 0 and 1, or their GPUs unless `gpu` is null; all ranks know the
/// result. Precondition: two ranks or more.
Ping measure_ping(Group& group, kernel::GpuExchange* gpu = nullptr);

/// The network as ranks find it that share `processors` in a schedule, by what the ping says of processor time. If more
/// of them work in the same round than there are processors, they add so many times more slowly, and each message waits
/// for those of the others to be handled.
Ping crowded(const Ping& ping, const sim::Schedule& schedule, int processors);
/// The processors that all ranks share; a large number if they do not lack any, as on several machines.
int shared_processors(const Group& group);

/// As many nodes of one GPU, each with one NIC of that rate on an ideal switch. Nothing else is slow but the additions.
class PlainFabric {
 public:
  PlainFabric(int ranks, const Ping& ping);
  const sim::FabricGraph& graph() const { return graph_; }

 private:
  platforms::Platform platform_;
  sim::FabricGraph graph_;
};

/// The rate and the latency of a message from rank 0 to rank 1, as a platform states them.
Ping stated_ping(const sim::FabricGraph& fabric);

}  // namespace ganymede::rehearsal
