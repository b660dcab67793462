#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>

#include "calibration/statistics.hpp"
#include "cli/calibrate_links.hpp"
#include "cli/calibrate_tables.hpp"
#include "cli/command.hpp"
#include "cli/device_options.hpp"
#include "cli/layer_lists.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "kernel/device_limits.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/train.hpp"
#include "platforms/catalog.hpp"
#include "studies/self_check.hpp"

namespace ganymede::cli {
namespace {

struct CalibrateOptions {
  kernel::TrainOptions train;
  std::vector<int> batches = {64};
  std::int64_t steps = 300;
  std::string check;  // a trace to check; empty: a trace is recorded, then checked
  int gpus = 1;       // the all-reduce between so many GPUs is timed
  LinkImport link;
};

/// Batch sizes are recorded in turns, so that a machine that becomes slower meanwhile affects all of them.
constexpr std::int64_t kRounds = 4;

/// Records one trace with an entry for each batch size.
traces::StepTrace record(const CalibrateOptions& options, const Shared& shared) {
  std::vector<std::unique_ptr<kernel::Trainer>> trainers;
  const std::int64_t warmup = kernel::warmup_of(options.steps);
  const std::size_t sizes = options.batches.size();
  const auto progress = progress_bar(shared, sizes * static_cast<std::size_t>(warmup + options.steps), "steps");
  std::size_t done = 0;
  const auto run = [&](kernel::Trainer& trainer, std::int64_t steps) {
    const auto show = [&](const kernel::Progress&) {
      if (progress) progress(++done);
    };
    trainer.run(steps, show, [](std::int64_t) { return false; });
  };
  for (const int batch : options.batches) {
    kernel::TrainOptions train = options.train;
    train.batch = batch;
    train.trace = true;
    remark(shared, fmt::format("recording {} steps of {} at batch {}", options.steps, train.model, batch));
    trainers.push_back(std::make_unique<kernel::Trainer>(train));
    run(*trainers.back(), warmup);
  }
  for (std::int64_t round = 0; round < kRounds; ++round)
    for (auto& trainer : trainers)
      run(*trainer, options.steps * (round + 1) / kRounds - options.steps * round / kRounds);
  const auto waiting = show_elapsed(shared, "measuring products, memory, launches and storage");
  traces::StepTrace trace = trainers.front()->trace(warmup);
  for (std::size_t i = 1; i < sizes; ++i)
    trace.batches.push_back(std::move(trainers[i]->trace(warmup).batches.front()));
  kernel::measure_details(trainers.front()->ops(), trace.device);
  const std::filesystem::path folder = std::filesystem::path(shared.output).parent_path();
  trace.device.storage_read = kernel::measure_storage_read(folder.empty() ? "." : folder);
  return trace;
}

/// How many threads waited for a processor on average while `batch` was recorded; 0 if the trace does not say.
double mean_wait(const traces::TraceBatch& batch) {
  if (!batch.utilization) return 0;
  const auto found = batch.utilization->samples.find("cpu_wait");
  if (found == batch.utilization->samples.end() || found->second.empty()) return 0;
  return std::accumulate(found->second.begin(), found->second.end(), 0.0) / static_cast<double>(found->second.size());
}

// The largest relative error of a mean step that is still of use.
constexpr double kTooNoisy = 0.1;
constexpr std::size_t kBlocksToTell = 4;  // a recording with fewer blocks is too short to tell its error

/// A warning for each batch size whose steps vary so much that their mean is of no use.
std::string noise(const traces::StepTrace& trace) {
  std::string out;
  for (const traces::TraceBatch& entry : trace.batches) {
    const calibration::BlockMean mean = calibration::block_mean(entry.wall_s, calibration::kBlockSteps);
    if (mean.blocks >= kBlocksToTell && mean.half_width > kTooNoisy * mean.mean)
      out += fmt::format(
          "TOO NOISY: the mean step at batch {} is known to +-{:.0f} % only ({:.0f} % is the most that is of "
          "use); {:.1f} threads waited for a processor; record more steps, or on a quieter machine\n",
          entry.batch, 100 * mean.half_width / mean.mean, 100 * kTooNoisy, mean_wait(entry));
  }
  return out;
}

/// Returns the text to write into a platform file for the device; empty if some catalog has it.
std::string gpu_entry(const traces::TraceDevice& device) {
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Gpu& gpu : platforms::catalog(provider).gpus)
      if (gpu.name == device.name) return "";
  OrderedJson entry = {{"kind", device.kind},
                       {"memory", fmt::format("{:.0f}MB", device.memory.si / 1e6)},
                       {"fp32", fmt::format("{:.1f}Gflop/s", device.fp32.si / 1e9)},
                       {"memory_bandwidth", fmt::format("{:.1f}GB/s", device.memory_bandwidth.si / 1e9)}};
  if (device.launch) entry["launch"] = fmt::format("{:.0f}ns", device.launch->si * 1e9);
  return fmt::format(
      "No catalog has \"{}\". In \"gpus\" of a platform file (`ganymede example platform`) it would be\n  \"{}\": {}\n",
      device.name, device.name, entry.dump());
}

// The mean number of threads that wait for a processor above which other programs have disturbed the measurement.
constexpr double kDisturbed = 0.1;
// Relative change of a rate above which the machine counts as another one than the trace's. A virtual machine may move
// to other cores between two runs: on an AMD EPYC two threads were 1.5 times as fast on one cache as on two, with less
// memory bandwidth.
constexpr double kOtherSpeed = 0.15;
constexpr int kAttempts = 3;

struct CheckOutcome {
  studies::SelfPrediction predicted;
  double measured_s = 0;
  double measured_wait = 0;  // threads that waited for a processor during the measurement
  double recorded_wait = 0;  // threads that waited for a processor while the trace was recorded
  double fp32 = 1;           // rate of matrix products now, relative to that in the trace
  double memory = 1;         // rate of copying memory now, relative to that in the trace
  std::int64_t steps = 0;
  int batch = 0;
  bool other_speed() const { return std::max(std::abs(fp32 - 1), std::abs(memory - 1)) > kOtherSpeed; }
  double error() const { return predicted.total.si / measured_s - 1; }
  bool holds() const { return measured_s >= predicted.interval_s.low && measured_s <= predicted.interval_s.high; }
};

CheckOutcome check(const traces::StepTrace& trace, const kernel::TrainOptions& wanted, const Shared& shared) {
  kernel::TrainOptions train = wanted;
  train.model = trace.model;
  train.batch = trace.batches.front().batch;
  train.seed = trace.seed;
  train.threads = trace.device.threads;
  train.trace = false;
  CheckOutcome outcome;
  outcome.batch = train.batch;
  outcome.steps = static_cast<std::int64_t>(trace.batches.front().wall_s.size());
  outcome.predicted = studies::predict_own_device(trace, outcome.steps);
  kernel::Trainer trainer(train);
  if (trainer.backend().info.device != trace.device.name)
    throw ConfigError(
        fmt::format("--check: the trace was recorded on \"{}\", this is \"{}\"; the check needs the same device",
                    trace.device.name, trainer.backend().info.device));
  const auto waiting = show_elapsed(
      shared, "checking the trace",
      outcome.predicted.total.si *
          (1 + static_cast<double>(kernel::warmup_of(outcome.steps)) / static_cast<double>(outcome.steps)));
  trainer.run(kernel::warmup_of(outcome.steps));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const traces::TraceDevice now = kernel::measure_device(trainer.backend());
    outcome.fp32 = now.fp32 / trace.device.fp32;
    outcome.memory = now.memory_bandwidth / trace.device.memory_bandwidth;
    const double before = kernel::processor_wait_s();
    outcome.measured_s = trainer.run(outcome.steps).seconds;
    outcome.measured_wait = (kernel::processor_wait_s() - before) / outcome.measured_s;
    if (outcome.measured_wait <= kDisturbed && !outcome.other_speed()) break;
  }
  outcome.recorded_wait = mean_wait(trace.batches.front());
  return outcome;
}

std::string disturbance(const CheckOutcome& outcome) {
  std::string text;
  const auto say = [&](const char* when, double wait) {
    if (wait > kDisturbed)
      text += fmt::format("  other programs were running {}: {:.1f} threads waited for a processor on average\n", when,
                          wait);
  };
  if (outcome.other_speed())
    text += fmt::format(
        "  this machine now multiplies matrices at {:.0f} % and copies memory at {:.0f} % of the rates in the trace\n",
        100 * outcome.fp32, 100 * outcome.memory);
  say("while the trace was recorded", outcome.recorded_wait);
  say(fmt::format("during the measurement ({} attempts)", kAttempts).c_str(), outcome.measured_wait);
  return text;
}

std::string check_text(const CheckOutcome& outcome, const std::string& device) {
  const auto& [low, high] = outcome.predicted.interval_s;
  return fmt::format(
             "Self-check on {} at batch {}: fitted on the first {} steps of the trace, then {} steps run without "
             "tracing\n"
             "  predicted {:.3f} s (95 % interval {:.3f} .. {:.3f} s), measured {:.3f} s: error {:+.1f} %, the "
             "interval {}\n",
             device, outcome.batch, outcome.predicted.steps_fitted, outcome.steps, outcome.predicted.total.si, low,
             high, outcome.measured_s, 100 * outcome.error(),
             outcome.holds() ? "holds" : "DOES NOT HOLD: the machine's speed changed between the two") +
         disturbance(outcome);
}

std::string check_json(const CheckOutcome& outcome) {
  const auto& [low, high] = outcome.predicted.interval_s;
  return OrderedJson{{"steps_fitted", outcome.predicted.steps_fitted},
                     {"steps", outcome.steps},
                     {"predicted_s", outcome.predicted.total.si},
                     {"interval_s", {low, high}},
                     {"measured_s", outcome.measured_s},
                     {"error", outcome.error()},
                     {"holds", outcome.holds()},
                     {"rates_against_trace", {{"fp32", outcome.fp32}, {"memory_bandwidth", outcome.memory}}},
                     {"threads_waiting", {{"recorded", outcome.recorded_wait}, {"measured", outcome.measured_wait}}}}
             .dump(2) +
         "\n";
}

/// Times the all-reduce between GPUs or processes. Beside the trace it writes a log as nccl-tests prints it, and an
/// overlay if a catalog and an instance are named.
void time_links(const CalibrateOptions& options, const std::string& trace, const Shared& shared) {
  if (trace.empty()) throw ConfigError("-o: missing, expected the file beside which the timed all-reduces are written");
  if (options.link.catalog.empty() != options.link.instance.empty())
    throw ConfigError("--catalog, --instance: expected both, or none: an overlay is of an instance of a platform");
  LinkImport link = options.link;
  std::filesystem::path stem = trace;
  stem.replace_extension();
  link.log = stem.string() + ".all-reduce.txt";
  link.gpus_per_node = link.gpus_per_node > 0 ? link.gpus_per_node : options.gpus / std::max(1, link.nodes);
  const std::string overlay = stem.string() + ".overlay.json";
  check_writable(link.log);
  calibrate_links(options.train, options.gpus, link, overlay, shared);
}

void run_calibrate(const CalibrateOptions& options, Shared& shared) {
  check_trainable(options.train.model);
  // With several processes no trace is recorded, because its times would include waiting for the others.
  if (kernel::launched_processes() > 1) {
    const std::string beside = std::exchange(shared.output, "");
    return time_links(options, beside, shared);
  }
  if (options.gpus > 1) check_gpus_for_links(options.train, options.gpus);
  std::string text;
  traces::StepTrace trace;
  const std::string beside = shared.output;
  if (!options.check.empty()) {
    trace = traces::load_step_trace(options.check);
  } else {
    if (shared.output.empty()) throw ConfigError("-o: missing, expected the file for the trace");
    std::set<int> sizes;
    for (const int batch : options.batches)
      if (!sizes.insert(batch).second)
        throw ConfigError(fmt::format("--batch: found {} twice, expected each size once", batch));
    check_output(shared);
    trace = record(options, shared);
    write_file(shared.output, traces::write_step_trace(trace));
    shared.output.clear();  // the text below goes to standard output
    const std::size_t width = result_width(shared);
    const std::string noisy = noise(trace);
    if (!noisy.empty() && shared.format != "table") say(noisy);
    if (shared.format == "table")
      text = report::wrap_prose(noisy + phase_table(trace, width) + "\n" + fit_table(trace, width) + "\n", width) +
             gpu_entry(trace.device) + "\n";
  }
  if (options.gpus > 1) time_links(options, beside, shared);
  const CheckOutcome outcome = check(trace, options.train, shared);
  emit(shared, shared.format == "json"
                   ? check_json(outcome)
                   : text + report::wrap_prose(check_text(outcome, trace.device.name), result_width(shared)));
  if (!outcome.holds()) shared.exit_code = ExitCode::failure;
}

void declare_calibrate(Parser command, Shared& shared) {
  auto options = std::make_shared<CalibrateOptions>();
  command.add_option("--model", options->train.model, "which GAN: see ganymede list models")
      .check(suggest("@models"))
      .capture_default_str();
  command.add_option("--batch", options->batches, "batch sizes, separated by commas")
      .delimiter(',')
      .capture_default_str();
  command.add_option("--steps", options->steps, "steps to record at each batch size, after warm-up")
      .check(integer_between(2, kernel::kMaxTracedSteps))
      .capture_default_str();
  command.add_option("--dataset", options->train.dataset, "builtin, or a directory of MNIST-format IDX files")
      .capture_default_str();
  add_device_options(command, options->train);
  add_seed(command, options->train.seed, "seed of weights, batches, latents and dropout");
  command
      .add_option("--gpus", options->gpus,
                  "also time the all-reduce between so many GPUs; under mpirun, only that between the processes")
      .check(integer_between(1, 1024));
  command.add_option("--catalog", options->link.catalog, "provider or platform file for which --gpus writes an overlay")
      .check(suggest("@providers @files"));
  command.add_option("--instance", options->link.instance, "instance type for which --gpus writes an overlay")
      .check(suggest("@instances"));
  command.add_option("--nodes", options->link.nodes, "nodes that the processes run on")
      .check(integer_between(1, 65536));
  command.add_option("--scheme", options->link.scheme, "scheme that is fitted to the timed all-reduces; default: nccl")
      .check(suggest("@schemes"));
  command.add_option("--check", options->check, "only check this trace, recorded on this machine");
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_calibrate(*options, shared); });
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "record step traces on this machine and check that they predict it",
          .examples =
              "  ganymede calibrate --model mlp-gan --batch 32,64,128 -o trace.json\n"
              "  ganymede calibrate --check trace.json\n",
          .about =
              "Records the steps of a real training on this machine, then checks that they predict it: fits a\n"
              "model to the first half of the trace, simulates one worker, and compares with a separate run\n"
              "without tracing. Exit code 1 if the stated interval does not hold the measurement.",
          .declare = declare_calibrate};
}

}  // namespace ganymede::cli
