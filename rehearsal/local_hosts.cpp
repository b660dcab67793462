#include "rehearsal/local_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "common/errors.hpp"
#include "common/process.hpp"
#include "common/statistics.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/execution.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/local_network.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kSmall = 1024, kLarge = std::size_t{256} << 10;
constexpr std::size_t kLargeOfGpus = std::size_t{64} << 20;  // which NVLink moves in some tenths of a millisecond
constexpr int kSmallTimes = 30, kLargeTimes = 7;
constexpr int kPingTag = 2;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

struct PingTimes {
  double half = 0;       ///< half the median time of a message to rank 1 and back
  double processor = 0;  ///< processor time of this rank for sending a message and receiving one
};

/// At rank 0; nothing elsewhere.
PingTimes round_trip(Group& group, std::size_t bytes, int times) {
  if (group.rank() > 1) return {};
  std::vector<std::byte> buffer(bytes);
  const int peer = 1 - group.rank();
  std::vector<double> halves;
  double processor = 0;
  for (int i = -2; i < times; ++i) {  // two for warm-up
    if (i == 0) processor = processor_time();
    const double before = group.now();
    if (group.is_first()) group.send(buffer, peer, kPingTag);
    group.receive(buffer, peer, kPingTag);
    if (!group.is_first()) group.send(buffer, peer, kPingTag);
    if (i >= 0) halves.push_back((group.now() - before) / 2);
  }
  return {median_of(halves), (processor_time() - processor) / times};
}

/// The same between GPUs, of which the processor time does not count: no two ranks have the same.
PingTimes round_trip_of_gpus(Group& group, kernel::GpuExchange& gpu, std::size_t bytes, int times) {
  const std::size_t floats = bytes / sizeof(float);
  std::vector<kernel::GpuRound> rounds;
  if (group.rank() < 2) {
    const kernel::GpuTransfer message{0, floats, 1 - group.rank()};
    const kernel::GpuRound sends{{message}, {}}, receives{{}, {message}};
    rounds = group.is_first() ? std::vector{sends, receives} : std::vector{receives, sends};
  }
  gpu.plan(floats, rounds);
  std::vector<double> halves;
  for (int i = -3; i < times; ++i) {  // connections, the graph, a warm-up
    group.barrier();
    const double before = group.now();
    gpu.start();
    group.finish(gpu, static_cast<std::int64_t>(2 * bytes));
    if (i >= 0) halves.push_back((group.now() - before) / 2);
  }
  return {median_of(halves), 0};
}

double seconds_of_adding(Group& group, std::size_t floats) {
  std::vector<float> mine(floats, 1), theirs(floats, 2);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const double before = group.now();
    add(mine, theirs.data());
    times.push_back(group.now() - before);
  }
  return median_of(times);
}

platforms::Platform plain_platform(const Ping& ping) {
  platforms::Platform platform;
  platform.name = "a pinged network";
  platforms::Gpu gpu;
  gpu.name = "processor";
  gpu.memory_bandwidth = ping.adding;
  platforms::Instance instance;
  instance.name = "host";
  instance.gpu = gpu.name;
  instance.gpus = 1;
  instance.nic.emplace();
  instance.nic->bandwidth = ping.rate;
  instance.nic->latency = 0.5 * ping.latency;  // a message crosses two
  platform.gpus.push_back(gpu);
  platform.instances.push_back(instance);
  return platform;
}

}  // namespace

Ping measure_ping(Group& group, kernel::GpuExchange* gpu) {
  const std::size_t largest = gpu != nullptr ? kLargeOfGpus : kLarge;
  const auto trip = [&](std::size_t bytes, int times) {
    return gpu != nullptr ? round_trip_of_gpus(group, *gpu, bytes, times) : round_trip(group, bytes, times);
  };
  const PingTimes small = trip(kSmall, kSmallTimes), large = trip(largest, kLargeTimes);
  // The difference tells the rate, unless noise hides it: then all of the large message's time is taken for its bytes.
  const double difference = large.half - small.half;
  const double rate = static_cast<double>(largest - kSmall) / (difference > 0 ? difference : large.half);
  // More than the caches hold of a processor or of a GPU.
  const std::size_t floats = std::size_t{1} << (gpu != nullptr ? 26 : 20);
  const double adding = gpu != nullptr ? gpu->seconds_of_adding(floats) : seconds_of_adding(group, floats);
  double found[4] = {rate, std::max(0.0, small.half - kSmall / rate),
                     sim::kMemoryBytesPerReducedByte * static_cast<double>(floats * sizeof(float)) / adding,
                     small.processor};
  group.broadcast(found);
  return {BytesPerSecond{found[0]}, Seconds{found[1]}, BytesPerSecond{found[2]}, Seconds{found[3]}};
}

Ping crowded(const Ping& ping, const sim::Schedule& schedule, int processors) {
  if (schedule.ranks() <= processors) return ping;
  // Rounds count by the bytes of their largest transfer, as they count in time.
  double time = 0, talking = 0, adding_time = 0, adding = 0;
  std::vector<sim::Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    std::set<int> talk, add;
    std::int64_t largest = 0;
    for (const sim::Transfer& transfer : transfers) {
      talk.insert({transfer.source, transfer.destination});
      if (transfer.reduce) add.insert(transfer.destination);
      largest = std::max(largest, transfer.length);
    }
    const auto weight = static_cast<double>(largest);
    time += weight;
    talking += weight * static_cast<double>(talk.size());
    if (!add.empty()) adding_time += weight;
    adding += weight * static_cast<double>(add.size());
  }
  const auto slowdown = [&](double ranks) { return std::max(1.0, ranks / processors); };
  const double talks = time > 0 ? slowdown(talking / time) : 1,
               adds = adding_time > 0 ? slowdown(adding / adding_time) : 1;
  Ping out = ping;
  out.adding *= 1 / adds;
  out.latency += (talks - 1) * ping.message;
  return out;
}

int shared_processors(const Group& group) {
  return group.is_crowded() ? static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) : std::numeric_limits<int>::max();
}

PlainFabric::PlainFabric(int ranks, const Ping& ping)
    : platform_(plain_platform(ping)), graph_(platform_, platform_.instances.front(), ranks, 1) {}

Ping stated_ping(const sim::FabricGraph& fabric) {
  std::vector<sim::Path> paths;
  fabric.paths(0, 1, paths);
  Ping ping{paths.front().limit(), paths.front().latency, fabric.endpoints().front().memory_bandwidth};
  for (const int link : paths.front().links)
    ping.rate = std::min(ping.rate, fabric.links()[static_cast<std::size_t>(link)].bandwidth);
  return ping;
}

namespace {

/// Bytes a second that the hosts of one machine may send together: a tenth of what two cores move through loopback, so
/// that the processor time of a message stays small beside its time on the network.
constexpr double kMostTogether = 250e6;
/// Seconds that a message may be under way: much less than what a rank waits for another before it gives up.
constexpr double kLongestLatency = Group::kPatience / 8;

/// The numbers of the hosts' processes, which they write themselves; 0: not started, or ended.
class RunningHosts {
 public:
  explicit RunningHosts(std::size_t hosts) : hosts_(hosts), memory_(hosts * sizeof(Pid)) {
    for (std::size_t host = 0; host < hosts; ++host) new (memory_.data() + host * sizeof(Pid)) Pid(0);
  }

  std::atomic<pid_t>& pid(std::size_t host) const { return reinterpret_cast<Pid*>(memory_.data())[host]; }
  void send(int signal) const {
    for (std::size_t host = 0; host < hosts_; ++host)
      if (const pid_t number = pid(host); number > 0) ::kill(number, signal);
  }

 private:
  using Pid = std::atomic<pid_t>;
  std::size_t hosts_;
  SharedMemory memory_;
};

constexpr const char* kCrash = "the simulation ";  // how the outcome of a child that a signal has ended begins

bool is_crash(const ChildOutcome& outcome) {
  return outcome.kind == ChildOutcome::Kind::failure && outcome.text.starts_with(kCrash);
}

/// How all hosts are brought to an end once one has failed or this program is to end.
class Ending {
 public:
  explicit Ending(const RunningHosts& running) : running_(running) {}

  void begin() {
    if (!since_) since_ = machine_time();
    running_.send(SIGTERM);  // they may be in a long phase, in which nobody waits for a message
  }
  bool has_begun() const { return since_.has_value(); }
  /// Kills what has not ended: a process that is stopped does not when it is asked to.
  void go_on() {
    constexpr double kPatience = 1;  // seconds
    if (!since_ || killed_ || machine_time() - *since_ < kPatience) return;
    killed_ = true;
    running_.send(SIGKILL);
  }
  /// True if a host has ended because of this.
  bool explains(const ChildOutcome& outcome) const {
    const auto by = [&](const char* signal) { return outcome.text.ends_with(signal); };
    return since_ && is_crash(outcome) && (by("(Terminated)") || (killed_ && by("(Killed)")));
  }

 private:
  const RunningHosts& running_;
  std::optional<double> since_;
  bool killed_ = false;
};

/// The message of another rank that ended because a rank had died, best of all one that waited for it.
std::string where_others_were(std::size_t dead, const std::vector<ChildOutcome>& outcomes) {
  std::string said;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (rank == dead || outcomes[rank].kind != ChildOutcome::Kind::failure || is_crash(outcomes[rank])) continue;
    const bool waited = (outcomes[rank].text + " ").find(fmt::format("rank {} ", dead)) != std::string::npos;
    if (said.empty() || waited) said = "; " + outcomes[rank].text;
    if (waited) break;
  }
  return said;
}

}  // namespace

std::string run_on_hosts(int hosts, Shaping shaping, bool name_spaces,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  assert(hosts >= 2 && hosts <= kMaxLocalHosts);
  const EndSignals signals;
  std::optional<NameSpaces> spaces;
  if (name_spaces) spaces.emplace(hosts, shaping.rate, shaping.latency, shaping.loss);
  shaping.is_paced = !name_spaces;
  shaping.is_delayed = !spaces || !spaces->has_netem();
  std::vector<int> all(static_cast<std::size_t>(hosts));
  std::iota(all.begin(), all.end(), 0);
  HostConnections connections(all, spaces ? &*spaces : nullptr);
  const RunningHosts running(all.size());
  std::optional<std::size_t> failed;  // the first host that did; a death comes before what it causes
  bool died = false;
  Ending ending(running);
  const auto landed = [&](std::size_t host, ChildOutcome& outcome) {
    connections.end(host);
    running.pid(host) = 0;
    const bool is_death = is_crash(outcome);
    if (outcome.kind == ChildOutcome::Kind::ok || ending.explains(outcome) || (failed && (died || !is_death))) return;
    if (is_death) outcome.text = fmt::format("rank {} has died: {}", host, outcome.text.substr(std::strlen(kCrash)));
    died = is_death;
    failed = host;
    ending.begin();
  };
  // Asked twice a second. All hosts have begun, so that there is nothing to stop.
  const auto look_after = [&] {
    if (EndSignals::asked() && !ending.has_begun()) {
      for (std::size_t host = 0; host < static_cast<std::size_t>(hosts); ++host) connections.end(host);
      ending.begin();
    }
    ending.go_on();
    return false;
  };
  const auto outcomes = run_children(
      static_cast<std::size_t>(hosts), hosts,
      [&](std::size_t host) {
        running.pid(host) = ::getpid();
        const ProcessorTurn turn(ProcessorTurn::Turn::before_others);
        if (spaces) spaces->enter(static_cast<int>(host));
        SocketMessenger messenger(static_cast<int>(host), connections.take(host), shaping);
        return work(messenger);
      },
      {}, ChildUse::once, landed, look_after);
  if (EndSignals::asked()) throw Interrupted("interrupted; all hosts have ended");
  if (!failed) return outcomes[0].text;
  ChildOutcome first = outcomes[*failed];
  if (died) first.text += where_others_were(*failed, outcomes);
  rethrow(first);
  return "";
}

void refuse_mpirun(const HostsChoice& choice) {
  if (choice.network == "mpirun")
    throw ConfigError("--network: found mpirun, expected namespaces or paced except for the steps of `rehearse`");
}

void refuse_launched(const HostsChoice& choice) {
  if (choice.hosts > 0 && kernel::launched_processes() > 1)
    throw ConfigError("--hosts: found several processes, expected one, which starts the others");
}

bool choose_name_spaces(const HostsChoice& choice, const Remark& remark) {
  if (choice.network == "paced") return false;
  const std::string why_not = why_no_name_spaces();
  if (!why_not.empty()) {
    if (!choice.network.empty())
      throw ConfigError(fmt::format("--network {}: {}; expected paced here", choice.network, why_not));
    remark("note: " + why_not + ": sockets are paced in place of network namespaces\n");
    return false;
  }
  if (const int removed = remove_left_over_name_spaces(); removed > 0)
    remark(fmt::format("note: removed {} network namespaces that a run before had left\n", removed));
  return true;
}

double slowest_scale(BytesPerSecond rate, int hosts) {
  return std::max(1.0, std::ceil(rate.si * hosts / kMostTogether));
}

Ping scaled(const Ping& ping, double scale) {
  return {.rate = ping.rate * (1 / scale), .latency = ping.latency * scale, .adding = ping.adding * (1 / scale)};
}

HostsNetwork network_of_hosts(const HostsChoice& choice, const sim::FabricGraph& fabric, const Remark& remark) {
  if (fabric.ranks() != choice.hosts || fabric.topology().nodes() != choice.hosts)
    throw ConfigError(fmt::format("--hosts {}: found {} GPUs on {} nodes, expected {} nodes with one GPU each",
                                  choice.hosts, fabric.ranks(), fabric.topology().nodes(), choice.hosts));
  HostsNetwork network{.stated = stated_ping(fabric)};
  if (choice.scale > 0 && choice.scale < 1)
    throw ConfigError(fmt::format("--scale {}: expected 1 or more, except with --life", choice.scale));
  network.scale = choice.scale > 0 ? choice.scale : slowest_scale(network.stated.rate, choice.hosts);
  if (const Seconds once = network.stated.latency; once.si * network.scale > kLongestLatency)
    throw ConfigError(fmt::format(
        "--scale {:g}: a message would be {} under way, expected {} at most: a scale of {:.0f}", network.scale,
        to_string(once * network.scale), to_string(Seconds{kLongestLatency}), std::floor(kLongestLatency / once.si)));
  network.stated = scaled(network.stated, network.scale);
  network.name_spaces = choose_name_spaces(choice, remark);
  return network;
}

std::string run_on_hosts(const HostsChoice& choice, const HostsNetwork& network,
                         const std::function<std::string(kernel::Messenger&)>& work) {
  refuse_mpirun(choice);
  return run_on_hosts(choice.hosts, {network.stated.rate, network.stated.latency, choice.loss}, network.name_spaces,
                      work);
}

}  // namespace ganymede::rehearsal
