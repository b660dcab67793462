#include "kernel/device_limits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::kernel {
namespace {

constexpr double kBudget = 0.05;  // seconds of measuring for each size
constexpr int kMinRepeats = 3;
// Sizes double until one run takes this many seconds or the last size is reached. Smaller products do not fill a GPU,
// and smaller arrays fit into caches.
constexpr double kMinRunSeconds = 4e-3;
constexpr int kFirstSide = 256, kLastSide = 8192;
constexpr std::size_t kFirstCopy = std::size_t{1} << 20, kLastCopy = std::size_t{1} << 28;  // numbers of floats

template <class Function>
double best_seconds(TensorOps& ops, const Function& function) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(kBudget);
  double best = 1e300;
  for (int i = 0; i < kMinRepeats || Clock::now() < deadline; ++i) {
    const auto begin = Clock::now();
    function();
    ops.timeline().synchronize();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

/// Writes normal numbers to parameters, the same ones again and again.
void write_normal(TensorOps& ops, float* to, std::size_t count, RandomStream& random) {
  std::vector<float> drawn(std::min(count, std::size_t{1} << 20));
  random.fill_normal(drawn);
  for (std::size_t at = 0; at < count; at += drawn.size())
    ops.write(to + at, {drawn.data(), std::min(drawn.size(), count - at)});
}

FlopsPerSecond measure_products(TensorOps& ops) {
  double best = 0;
  for (int side = kFirstSide;; side *= 2) {
    const auto size = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
    const std::size_t bytes = size * bytes_of(ops.element_type());
    const Buffer result = ops.allocate(bytes), operand = ops.allocate(bytes), weight = ops.allocate_parameters(size);
    const Tensor y{result.memory.get(), side, side}, x{operand.memory.get(), side, side};
    // On zeros a GPU draws less power and is up to 13 % faster (measured on an H200); a bias would be another kernel.
    const DenseParameters parameters{weight.floats(), nullptr};
    RandomStream random(1, "kernel/limits");
    ops.fill_normal(x, random);
    write_normal(ops, weight.floats(), size, random);
    const double seconds = best_seconds(ops, [&] { ops.dense_forward(y, x, parameters); });
    best = std::max(best, 2.0 * side * side * side / seconds);
    if (seconds >= kMinRunSeconds || side == kLastSide) return Flops{best} / Seconds{1};
  }
}

BytesPerSecond measure_copy(TensorOps& ops) {
  for (std::size_t floats = kFirstCopy;; floats *= 2) {
    const Buffer from = ops.allocate(floats * sizeof(float)), to = ops.allocate(floats * sizeof(float));
    const double seconds = best_seconds(ops, [&] { ops.copy(to.floats(), from.floats(), floats); });
    if (seconds >= kMinRunSeconds || floats == kLastCopy)
      return Bytes{2.0 * static_cast<double>(floats * sizeof(float))} / Seconds{seconds};  // read and written
  }
}

}  // namespace

void measure_details(TensorOps& ops, traces::TraceDevice& device) {
  // The convolution is the second of dcgan-64's discriminator.
  constexpr int kBatch = 16;
  const ConvolutionShape shape{
      .in_channels = 64, .in_height = 32, .in_width = 32, .out_channels = 128, .kernel = 4, .stride = 2, .padding = 1};
  const auto count_of = [](int features) { return static_cast<std::size_t>(features) * kBatch; };
  ops.reserve_workspace(ops.convolution_workspace_bytes(shape, kBatch));
  const std::size_t each = bytes_of(ops.element_type());
  const Buffer from = ops.allocate(count_of(shape.in_features()) * each);
  const Buffer to = ops.allocate(count_of(shape.out_features()) * each);
  const Tensor x{from.memory.get(), shape.in_features(), kBatch}, y{to.memory.get(), shape.out_features(), kBatch};
  const Buffer weight = ops.allocate_parameters(shape.weights());
  RandomStream random(1, "kernel/limits");
  ops.fill_normal(x, random);
  write_normal(ops, weight.floats(), shape.weights(), random);
  const double seconds = best_seconds(ops, [&] { ops.convolve(y, x, shape, weight.floats()); });
  device.convolution = Flops{shape.flops() * kBatch} / Seconds{seconds};

  constexpr int kLaunches = 1000;
  device.launch = Seconds{best_seconds(ops,
                                       [&] {
                                         for (int i = 0; i < kLaunches; ++i) ops.fill({y.data, 1, 1}, 0);
                                       }) /
                          kLaunches};

  device.host_copy = measure_host_copy(ops);
}

BytesPerSecond measure_host_copy(TensorOps& ops) {
  constexpr std::size_t kFloats = std::size_t{1} << 24;
  const Buffer from = ops.allocate_host(kFloats * sizeof(float)), to = ops.allocate(kFloats * sizeof(float));
  const double seconds = best_seconds(ops, [&] { ops.write(to.floats(), {from.floats(), kFloats}); });
  return Bytes{static_cast<double>(kFloats * sizeof(float))} / Seconds{seconds};
}

std::optional<BytesPerSecond> measure_storage_read(const std::filesystem::path& folder) {
  constexpr std::size_t kBlock = std::size_t{1} << 20, kBlocks = 96;
  std::string name = (folder / ".ganymede-storage-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return std::nullopt;
  ::unlink(name.c_str());
  std::vector<char> block(kBlock);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761U >> 13);
  bool fine = true;
  for (std::size_t i = 0; i < kBlocks && fine; ++i)
    fine = ::write(file, block.data(), block.size()) == static_cast<::ssize_t>(block.size());
  fine = fine && ::fdatasync(file) == 0 && ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
         ::lseek(file, 0, SEEK_SET) == 0;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < kBlocks && fine; ++i)
    fine = ::read(file, block.data(), block.size()) == static_cast<::ssize_t>(block.size());
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  ::close(file);
  if (!fine || seconds <= 0) return std::nullopt;
  return Bytes{static_cast<double>(kBlock * kBlocks)} / Seconds{seconds};
}

Bytes host_memory() {
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  double limit = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");  // holds the word "max" if there is no limit
  return Bytes{group >> limit && limit > 0 ? std::min(machine, limit) : machine};
}

traces::TraceDevice measure_device(const Backend& backend) {
  TensorOps& ops = *backend.ops;
  traces::TraceDevice device;
  device.name = backend.info.device;
  const bool gpu = backend.timeline->has_clock();
  device.kind = gpu ? "gpu" : "cpu";
  device.threads = backend.info.threads;
  device.fp32 = measure_products(ops);
  device.memory_bandwidth = measure_copy(ops);
  device.memory = gpu ? Bytes{ops.available_bytes() + static_cast<double>(ops.peak_allocated_bytes())} : host_memory();
  return device;
}

}  // namespace ganymede::kernel
