#include "kernel/device_limits.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace ganymede::kernel {
namespace {

constexpr double kBudget = 0.05;  // seconds for each size
constexpr int kRepeatsMin = 3;
// Work grows until it lasts so long, or is so much: only then is a GPU full, and an array larger than every cache.
constexpr double kLongEnough = 4e-3;
constexpr int kFirstSide = 256, kLastSide = 8192;
constexpr std::size_t kFirstCopy = std::size_t{1} << 20, kLastCopy = std::size_t{1} << 28;  // floats

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

FlopsPerSecond measure_products(Ops& ops) {
  double best = 0;
  for (int side = kFirstSide;; side *= 2) {
    const auto size = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
    const Buffer memory = ops.allocate((3 * size + static_cast<std::size_t>(side)) * sizeof(float));
    float* at = memory.floats();
    const Tensor y{at, side, side}, x{at + size, side, side};
    const DenseParameters parameters{at + 2 * size, at + 3 * size};
    const double seconds = best_seconds(ops, [&] { ops.dense_forward(y, x, parameters); });
    best = std::max(best, 2.0 * side * side * side / seconds);
    if (seconds >= kLongEnough || side == kLastSide) return Flops{best} / Seconds{1};
  }
}

BytesPerSecond measure_copy(Ops& ops) {
  for (std::size_t floats = kFirstCopy;; floats *= 2) {
    const Buffer from = ops.allocate(floats * sizeof(float)), to = ops.allocate(floats * sizeof(float));
    const double seconds = best_seconds(ops, [&] { ops.copy(to.floats(), from.floats(), floats); });
    if (seconds >= kLongEnough || floats == kLastCopy)
      return Bytes{2.0 * static_cast<double>(floats * sizeof(float))} / Seconds{seconds};  // read and written
  }
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
  const bool gpu = ops.has_clock();
  device.kind = gpu ? "gpu" : "cpu";
  device.threads = ops.threads();
  device.fp32 = measure_products(ops);
  device.memory_bandwidth = measure_copy(ops);
  device.memory = gpu ? Bytes{ops.available_bytes() + static_cast<double>(ops.peak_allocated_bytes())} : host_memory();
  return device;
}

}  // namespace ganymede::kernel
