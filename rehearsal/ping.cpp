#include "rehearsal/ping.hpp"

#include <algorithm>
#include <vector>

#include "common/statistics.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kSmall = 1024, kLarge = std::size_t{256} << 10;
constexpr int kSmallTimes = 30, kLargeTimes = 7;
constexpr int kPingTag = 2;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// Half the median time of a message to rank 1 and back, at rank 0; 0 elsewhere.
double half_round_trip(Group& group, std::size_t bytes, int times) {
  if (group.rank() > 1) return 0;
  std::vector<std::byte> buffer(bytes);
  const int peer = 1 - group.rank();
  std::vector<double> halves;
  for (int i = -2; i < times; ++i) {  // two for warm-up
    const double before = group.now();
    if (group.is_first()) group.send(buffer, peer, kPingTag);
    group.receive(buffer, peer, kPingTag);
    if (!group.is_first()) group.send(buffer, peer, kPingTag);
    if (i >= 0) halves.push_back((group.now() - before) / 2);
  }
  return median_of(halves);
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

Ping measure_ping(Group& group) {
  const double small = half_round_trip(group, kSmall, kSmallTimes), large = half_round_trip(group, kLarge, kLargeTimes);
  const double rate = static_cast<double>(kLarge - kSmall) / std::max(large - small, 1e-9);
  constexpr std::size_t kFloats = kLarge / sizeof(float);
  double found[3] = {rate, std::max(0.0, small - kSmall / rate),
                     sim::kMemoryBytesPerReducedByte * double{kLarge} / seconds_of_adding(group, kFloats)};
  group.broadcast(found);
  return {BytesPerSecond{found[0]}, Seconds{found[1]}, BytesPerSecond{found[2]}};
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
