#include "kernel/session/record_trace.hpp"

#include <fmt/format.h>

#include "kernel/device_limits.hpp"

namespace ganymede::kernel {
namespace {

/// Batch sizes are recorded in turns, so that a machine that becomes slower meanwhile affects all of them.
constexpr std::int64_t kRounds = 4;

}  // namespace

std::size_t record_steps(const RecordOptions& options) {
  return options.batches.size() * static_cast<std::size_t>(warmup_of(options.steps) + options.steps);
}

traces::StepTrace record_trace(const RecordOptions& options, const RecordView& view) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  const std::int64_t warmup = warmup_of(options.steps);
  std::size_t done = 0;
  const auto run = [&](Trainer& trainer, std::int64_t steps) {
    const auto show = [&](const Progress&) {
      if (view.progress) view.progress(++done);
    };
    trainer.run(steps, show, [](std::int64_t) { return false; });
  };
  for (const int batch : options.batches) {
    TrainOptions train = options.train;
    train.batch = batch;
    train.trace = true;
    if (view.remark)
      view.remark(fmt::format("recording {} steps of {} at batch {}", options.steps, train.model, batch));
    trainers.push_back(std::make_unique<Trainer>(train));
    run(*trainers.back(), warmup);
  }
  for (std::int64_t round = 0; round < kRounds; ++round)
    for (auto& trainer : trainers)
      run(*trainer, options.steps * (round + 1) / kRounds - options.steps * round / kRounds);
  const auto waiting = view.waiting ? view.waiting("measuring products, memory, launches and storage") : nullptr;
  traces::StepTrace trace = trainers.front()->trace(warmup);
  for (std::size_t i = 1; i < trainers.size(); ++i)
    trace.batches.push_back(std::move(trainers[i]->trace(warmup).batches.front()));
  measure_details(trainers.front()->ops(), trace.device);
  trace.device.storage_read = measure_storage_read(options.folder.empty() ? "." : options.folder);
  return trace;
}

}  // namespace ganymede::kernel
