#pragma once
// A rehearsal on one machine: processes that stand for hosts, and a network between them that is as slow as it should
// be.

#include <functional>
#include <string>

#include "platforms/platform.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/socket_messenger.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::rehearsal {

/// A network as it is measured: a message between two ranks, and the fabric that the simulator takes from it.
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

inline constexpr int kMaxLocalHosts = 64;

/// The processes that stand for hosts, and their network, as options ask for them.
struct HostsChoice {
  int hosts = 0;             ///< 0: a launcher has started the processes
  double scale = 0;          ///< how many times as long everything takes; 0: as long as this machine needs
  std::string network = {};  ///< namespaces, paced or mpirun; empty: namespaces where they can be made
  double loss = 0;           ///< share of packets that are lost
};

/// Tells the user something that is no error.
using Remark = std::function<void(const std::string&)>;

/// The network between the hosts of a fabric, at a scale that this machine can follow.
struct HostsNetwork {
  double scale = 1;
  bool name_spaces = false;
  Ping stated = {};  ///< the fabric's, `scale` times as slow
};
/// Throws ConfigError if the fabric's ranks are not as many nodes as --hosts says, or if the network asked for cannot
/// be made here. Removes name spaces that are left over, and says so.
HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Remark& remark);

/// A network on which everything takes `scale` times as long.
Ping scaled(const Ping& ping, double scale);
/// How many times as long as on the platform a message takes at least here, if `hosts` NICs of that rate send together.
double slowest_scale(BytesPerSecond rate, int hosts);
/// Whether the network is one of name spaces. Throws ConfigError if they are asked for and cannot be made; removes
/// those that are left over, and says so.
bool choose_name_spaces(const HostsChoice& choice, const Remark& remark);
/// Throws ConfigError for `--network mpirun`.
void refuse_mpirun(const HostsChoice& choice);
/// Throws ConfigError if --hosts is to start processes although a launcher has started several.
void refuse_launched(const HostsChoice& choice);

/// Starts `hosts` processes, calls `work` in each and returns the text of host 0. With `name_spaces` each process is in
/// a network namespace whose interface has the rate; without, its sockets on the loopback interface are paced. When
/// this returns or throws, no process and no name space is left. Throws what the first host to fail threw, or Failure
/// that names a host that died.
std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work);
/// The same on the network that was chosen. Throws ConfigError for `--network mpirun`.
std::string run_on_hosts(const HostsChoice& choice, const HostsNetwork& network,
                         const std::function<std::string(kernel::Messenger&)>& work);

}  // namespace ganymede::rehearsal
