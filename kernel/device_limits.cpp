#include "kernel/device_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace ganymede::kernel {
namespace {

constexpr double kBudget = 0.2;  // seconds for each measurement
constexpr int kRepeatsMin = 3;
constexpr int kSide = 768;  // 0.9 GFLOP; its three matrices (7 MiB) need no more than a second- or third-level cache
// Twice the largest shared cache in common use, for each of the two arrays.
constexpr std::size_t kCopyFloats = std::size_t{1} << 24;

template <class Function>
double best_seconds(Ops& ops, const Function& function) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(kBudget);
  double best = 1e300;
  for (int i = 0; i < kRepeatsMin || Clock::now() < deadline; ++i) {
    const auto begin = Clock::now();
    function();
    ops.synchronize();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

FlopsPerSecond measure_fp32(Ops& ops) {
  constexpr std::size_t kSize = std::size_t{kSide} * kSide;
  const Buffer memory = ops.allocate((3 * kSize + kSide) * sizeof(float));
  float* at = memory.floats();
  const Tensor y{at, kSide, kSide}, x{at + kSize, kSide, kSide};
  const DenseParameters parameters{at + 2 * kSize, at + 3 * kSize};
  const double seconds = best_seconds(ops, [&] { ops.dense_forward(y, x, parameters); });
  return Flops{2.0 * kSide * kSide * kSide} / Seconds{seconds};
}

BytesPerSecond measure_copy(Ops& ops) {
  const Buffer from = ops.allocate(kCopyFloats * sizeof(float)), to = ops.allocate(kCopyFloats * sizeof(float));
  const double seconds = best_seconds(ops, [&] { ops.copy(to.floats(), from.floats(), kCopyFloats); });
  return Bytes{2.0 * static_cast<double>(kCopyFloats * sizeof(float))} / Seconds{seconds};  // read and written
}

}  // namespace

Bytes host_memory() {
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  double limit = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");  // the word "max" where there is no limit
  return Bytes{group >> limit && limit > 0 ? std::min(machine, limit) : machine};
}

TraceDevice measure_device(Ops& ops) {
  TraceDevice device;
  device.name = ops.device();
  device.kind = "cpu";
  device.threads = ops.threads();
  device.fp32 = measure_fp32(ops);
  device.memory_bandwidth = measure_copy(ops);
  device.memory = host_memory();
  return device;
}

}  // namespace ganymede::kernel
