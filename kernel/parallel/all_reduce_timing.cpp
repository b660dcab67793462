#include "kernel/parallel/all_reduce_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "common/errors.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/thread_group.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::size_t kMinMessageBytes = 4096, kMaxMessageBytes = std::size_t{64} << 20, kMessageRatio = 4;
constexpr int kWarmups = 3, kMinRounds = 5, kMaxRounds = 200;
constexpr double kBudget = 0.1;  // seconds of measuring for each size, about

/// Mean seconds of an all-reduce of so many floats: over several runs after some for warm-up and over all ranks.
double time_all_reduce(const Backend& backend, Communicator& communicator, std::size_t floats) {
  using Clock = std::chrono::steady_clock;
  GradientReducer* const on_device = backend.gradient_reducer.get();
  const Buffer device = on_device != nullptr ? backend.ops->allocate(floats * sizeof(float)) : Buffer{};
  std::vector<float> host(on_device != nullptr ? 0 : floats);
  const auto once = [&] {
    if (on_device == nullptr) return communicator.sum_gradients(host);
    on_device->reduce(device.floats(), floats, {});
    on_device->finish();
    backend.timeline->synchronize();
  };
  const auto timed = [&](int times) {
    double all_there = 0;
    communicator.sum({&all_there, 1});
    const auto begin = Clock::now();
    for (int i = 0; i < times; ++i) once();
    return std::chrono::duration<double>(Clock::now() - begin).count() / times;
  };
  double first = timed(kWarmups);
  communicator.sum({&first, 1});  // all ranks must repeat it equally often
  first /= communicator.shard().ranks;
  const int times =
      static_cast<int>(std::clamp(kBudget / std::max(first, 1e-9), double{kMinRounds}, double{kMaxRounds}));
  double seconds = timed(times);
  communicator.sum({&seconds, 1});
  return seconds / communicator.shard().ranks;
}

TimedAllReduces time_sizes(const TrainOptions& train, Communicator& communicator,
                           const std::function<void(std::size_t)>& progress) {
  const Trainer trainer(train, &communicator);
  const Backend& backend = trainer.backend();
  TimedAllReduces timed{communicator.shard().ranks,
                        backend.gradient_reducer != nullptr ? "NCCL" : communicator.name(),
                        backend.info.device,
                        {}};
  if (progress && communicator.shard().rank == 0) progress(0);
  for (std::size_t bytes = kMinMessageBytes; bytes <= kMaxMessageBytes; bytes *= kMessageRatio) {
    timed.sizes.push_back(
        {static_cast<std::int64_t>(bytes), time_all_reduce(backend, communicator, bytes / sizeof(float))});
    if (progress && communicator.shard().rank == 0) progress(timed.sizes.size());
  }
  if (communicator.shard().rank > 0) timed.sizes.clear();
  return timed;
}

}  // namespace

void check_gpus_for_links(const TrainOptions& train, int gpus) {
  const Gpus found = count_gpus();
  if (train.backend == "cpu" || found.count < gpus)
    throw ConfigError(fmt::format(
        "--gpus: found {}, {}; of processes on processors: mpirun -n {} ganymede calibrate --gpus {}", gpus,
        found.count > 0 ? fmt::format("this machine has {}", found.count) : "here " + found.why_none, gpus, gpus));
}

std::size_t timed_sizes() {
  std::size_t sizes = 0;
  for (std::size_t bytes = kMinMessageBytes; bytes <= kMaxMessageBytes; bytes *= kMessageRatio) ++sizes;
  return sizes;
}

TimedAllReduces time_all_reduces(const TrainOptions& train, int gpus,
                                 const std::function<void(std::size_t)>& progress) {
  TrainOptions mine = train;
  if (const auto communicator = open_communicator()) {
    if (mine.backend != "cpu") mine.gpu = gpu_of_process(count_gpus().count);
    return time_sizes(mine, *communicator, progress);
  }
  check_gpus_for_links(train, gpus);
  TimedAllReduces timed;
  ThreadGroup::run(gpus, [&](Communicator& communicator) {
    TrainOptions own = train;
    own.gpu = communicator.shard().rank;
    const TimedAllReduces one = time_sizes(own, communicator, progress);
    if (communicator.shard().rank == 0) timed = one;
  });
  return timed;
}

}  // namespace ganymede::kernel
