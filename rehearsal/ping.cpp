#include "rehearsal/ping.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "common/statistics.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/execution.hpp"

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

}  // namespace ganymede::rehearsal
