#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "calibration/trace_tables.hpp"
#include "cli/command.hpp"
#include "cli/import.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/parallel/all_reduce_timing.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/session/record_trace.hpp"
#include "studies/self_check.hpp"

namespace ganymede::cli {
namespace {

struct CalibrateOptions {
  kernel::RecordOptions record;
  std::string check;  ///< a trace to check; empty: a trace is recorded, then checked
  int gpus = 1;       ///< the all-reduce between so many GPUs is timed
  LinkImport link;
};

traces::StepTrace record(const CalibrateOptions& options, const Shared& shared) {
  std::set<int> sizes;
  for (const int batch : options.record.batches)
    if (!sizes.insert(batch).second)
      throw ConfigError(fmt::format("--batch: found {} twice, expected each size once", batch));
  check_output(shared);
  kernel::RecordOptions record = options.record;
  record.folder = std::filesystem::path(shared.output).parent_path();
  return kernel::record_trace(record, {.remark = [&](const std::string& sentence) { remark(shared, sentence); },
                                       .progress = progress_bar(shared, kernel::record_steps(record), "steps"),
                                       .waiting = [&](const std::string& what) -> std::shared_ptr<void> {
                                         return show_elapsed(shared, what);
                                       }});
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
  check_writable(link.log);
  const kernel::TrainOptions& train = options.record.train;
  std::function<void(std::size_t)> bar;  // shown by the first process alone
  const kernel::TimedAllReduces timed = kernel::time_all_reduces(train, options.gpus, [&](std::size_t done) {
    if (done == 0) bar = progress_bar(shared, kernel::timed_sizes(), "sizes of all-reduce");
    if (bar && done > 0) bar(done);
  });
  if (timed.sizes.empty()) return;
  std::vector<TimedSize> sizes;
  for (const auto& size : timed.sizes) sizes.push_back({size.bytes, size.seconds});
  const std::string log = log_of_sizes(timed.ranks, timed.by, timed.on, sizes);
  write_file(link.log, log);
  if (link.catalog.empty()) {
    remark(shared,
           fmt::format("{}: `ganymede import nccl-tests {} --catalog ... --instance ...` makes an overlay of it",
                       link.log, link.log));
    return emit(shared, log);
  }
  Shared to_overlay = shared;
  to_overlay.output = stem.string() + ".overlay.json";
  import_collective_log(link, to_overlay);
}

void run_calibrate(const CalibrateOptions& options, Shared& shared) {
  check_trainable(options.record.train.model);
  // With several processes no trace is recorded, because its times would include waiting for the others.
  if (kernel::launched_processes() > 1) {
    const std::string beside = std::exchange(shared.output, "");
    return time_links(options, beside, shared);
  }
  if (options.gpus > 1) kernel::check_gpus_for_links(options.record.train, options.gpus);
  std::string text;
  traces::StepTrace trace;
  const std::string beside = shared.output;
  if (!options.check.empty()) {
    trace = traces::load_step_trace(options.check);
  } else {
    if (shared.output.empty()) throw ConfigError("-o: missing, expected the file for the trace");
    trace = record(options, shared);
    write_file(shared.output, traces::write_step_trace(trace));
    shared.output.clear();  // the text below goes to standard output
    const std::size_t width = result_width(shared);
    const std::string noisy = calibration::noise_warning(trace);
    if (!noisy.empty() && shared.format != "table") say(noisy);
    if (shared.format == "table")
      text = report::wrap_prose(
                 noisy + calibration::phase_table(trace, width) + "\n" + calibration::fit_table(trace, width) + "\n",
                 width) +
             calibration::gpu_entry(trace.device) + "\n";
  }
  if (options.gpus > 1) time_links(options, beside, shared);
  const studies::SelfCheck outcome =
      studies::check_own_device(trace, options.record.train, [&](double expected_s) -> std::shared_ptr<void> {
        return show_elapsed(shared, "checking the trace", expected_s);
      });
  emit(shared, shared.format == "json"
                   ? studies::to_json(outcome)
                   : text + report::wrap_prose(studies::to_table(outcome, trace.device.name), result_width(shared)));
  if (!outcome.holds()) shared.exit_code = ExitCode::failure;
}

void declare_calibrate(Parser command, Shared& shared) {
  auto options = std::make_shared<CalibrateOptions>();
  command.add_option("--model", options->record.train.model, "which GAN: see ganymede list models", suggest("@models"))
      .capture_default_str();
  command.add_option("--batch", options->record.batches, "batch sizes, separated by commas")
      .delimiter(',')
      .capture_default_str();
  command
      .add_option("--steps", options->record.steps, "steps to record at each batch size, after warm-up",
                  integer_between(2, kernel::kMaxTracedSteps))
      .capture_default_str();
  command.add_option("--dataset", options->record.train.dataset, "builtin, or a directory of MNIST-format IDX files")
      .capture_default_str();
  add_device_options(command, options->record.train);
  add_seed(command, options->record.train.seed, "seed of weights, batches, latents and dropout");
  command.add_option("--gpus", options->gpus,
                     "also time the all-reduce between so many GPUs; under mpirun, only that between the processes",
                     integer_between(1, 1024));
  command.add_option("--catalog", options->link.catalog, "provider or platform file for which --gpus writes an overlay",
                     suggest("@providers @files"));
  command.add_option("--instance", options->link.instance, "instance type for which --gpus writes an overlay",
                     suggest("@instances"));
  command.add_option("--nodes", options->link.nodes, "nodes that the processes run on", integer_between(1, 65536));
  command.add_option("--scheme", options->link.scheme, "scheme that is fitted to the timed all-reduces; default: nccl",
                     suggest("@schemes"));
  command.add_option("--check", options->check, "only check this trace, recorded on this machine");
  add_result(command, shared, {"table", "json"});
  command.callback([options, &shared] { run_calibrate(*options, shared); });
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
          .trains = true,
          .declare = declare_calibrate};
}

}  // namespace ganymede::cli
