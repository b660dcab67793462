#include "cli/calibrate_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/parallel/thread_group.hpp"

namespace ganymede::cli {
namespace {

constexpr std::size_t kMinMessageBytes = 4096, kMaxMessageBytes = std::size_t{64} << 20;
constexpr int kWarmups = 3, kMinRounds = 5, kMaxRounds = 200;
constexpr double kBudget = 0.1;  // seconds of measuring for each size, about

/// Mean seconds of an all-reduce of so many floats: over several runs after some for warm-up and over all ranks.
double time_all_reduce(const kernel::Backend& backend, kernel::Communicator& communicator, std::size_t floats) {
  using Clock = std::chrono::steady_clock;
  kernel::GradientReducer* const on_device = backend.gradient_reducer.get();
  const kernel::Buffer device = on_device != nullptr ? backend.ops->allocate(floats * sizeof(float)) : kernel::Buffer{};
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

std::string log_of(const kernel::Backend& backend, kernel::Communicator& communicator, const Shared& shared) {
  std::vector<TimedSize> sizes;
  for (std::size_t bytes = kMinMessageBytes; bytes <= kMaxMessageBytes; bytes *= 4)
    sizes.push_back({static_cast<std::int64_t>(bytes), 0});
  std::function<void(std::size_t)> progress;
  if (communicator.shard().rank == 0) progress = progress_bar(shared, sizes.size(), "sizes of all-reduce");
  for (TimedSize& size : sizes) {
    size.seconds = time_all_reduce(backend, communicator, static_cast<std::size_t>(size.bytes) / sizeof(float));
    if (progress) progress(static_cast<std::size_t>(&size - sizes.data()) + 1);
  }
  return log_of_sizes(communicator.shard().ranks, backend.gradient_reducer != nullptr ? "NCCL" : communicator.name(),
                      backend.info.device, sizes);
}

void measure(const kernel::TrainOptions& train, kernel::Communicator& communicator, const LinkImport& link,
             const std::string& overlay, const Shared& shared) {
  kernel::Trainer trainer(train, &communicator);
  const std::string log = log_of(trainer.backend(), communicator, shared);
  if (communicator.shard().rank > 0) return;
  write_file(link.log, log);
  if (link.catalog.empty()) {
    remark(shared,
           fmt::format("{}: `ganymede import nccl-tests {} --catalog ... --instance ...` makes an overlay of it",
                       link.log, link.log));
    return emit(shared, log);
  }
  Shared to_overlay = shared;
  to_overlay.output = overlay;
  import_collective_log(link, to_overlay);
}

}  // namespace

std::string log_of_sizes(int ranks, const std::string& by, const std::string& on, std::span<const TimedSize> sizes) {
  std::string log = fmt::format(
      "# all-reduce of {} ranks by {}, {}\n#       size         count      type   redop    root     time   "
      "algbw   busbw\n",
      ranks, by, on);
  for (const TimedSize& size : sizes) {
    const double rate = static_cast<double>(size.bytes) / size.seconds / 1e9;
    log += fmt::format("{:12} {:13} {:>9} {:>7} {:>7} {:8.2f} {:7.2f} {:7.2f}\n", size.bytes, size.bytes / 4, "float",
                       "sum", -1, size.seconds * 1e6, rate, rate * 2 * (ranks - 1) / ranks);
  }
  return log;
}

void check_gpus_for_links(const kernel::TrainOptions& train, int gpus) {
  const kernel::Gpus found = kernel::count_gpus();
  if (train.backend == "cpu" || found.count < gpus)
    throw ConfigError(fmt::format(
        "--gpus: found {}, {}; of processes on processors: mpirun -n {} ganymede calibrate --gpus {}", gpus,
        found.count > 0 ? fmt::format("this machine has {}", found.count) : "here " + found.why_none, gpus, gpus));
}

void calibrate_links(const kernel::TrainOptions& train, int gpus, LinkImport link, const std::string& overlay,
                     const Shared& shared) {
  if (const auto communicator = kernel::open_communicator()) {
    kernel::TrainOptions mine = train;
    if (mine.backend != "cpu") mine.gpu = kernel::gpu_of_process(kernel::count_gpus().count);
    return measure(mine, *communicator, link, overlay, shared);
  }
  check_gpus_for_links(train, gpus);
  kernel::ThreadGroup::run(gpus, [&](kernel::Communicator& communicator) {
    kernel::TrainOptions mine = train;
    mine.gpu = communicator.shard().rank;
    measure(mine, communicator, link, overlay, shared);
  });
}

}  // namespace ganymede::cli
