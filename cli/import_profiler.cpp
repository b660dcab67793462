// ganymede import profiler: a PyTorch profiler trace as a step trace.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "calibration/kernels/gpu_sheets.hpp"
#include "cli/command.hpp"
#include "cli/layer_lists.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "report/table.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::cli {
namespace {

struct ProfilerFlags {
  std::vector<std::string> files;
  std::string catalog = "aws", gpu, model = "model", layers, precision;
  int batch = 0;
  std::int64_t parameters = 0;
  bool override_gpu = false;
};

/// How a recorded GPU is asked for: by its name in the catalog in use, else in another one.
std::string flags_of(const calibration::GpuSheet* recorded, const std::string& catalog) {
  const auto name_in = [&](const platforms::Platform& platform) -> std::string {
    for (const platforms::Gpu& gpu : platform.gpus)
      if (calibration::find_gpu_sheet(gpu.name) == recorded) return gpu.name;
    return "";
  };
  if (const std::string name = name_in(platforms::load_catalog(catalog, ".")); !name.empty())
    return fmt::format("expected --gpu {}", name);
  for (const std::string& provider : platforms::provider_names())
    if (const std::string name = name_in(platforms::catalog(provider)); !name.empty())
      return fmt::format("expected --gpu {} --catalog {}", name, provider);
  return "which no catalog has: expected a platform file with it";
}

/// Refuses a --gpu that is not the one that a trace names, unless it is to replace it. Returns a note where the trace
/// does not confirm it, or nothing.
std::string check_gpu(const ProfilerFlags& flags, const traces::ProfilerEvents& events) {
  if (events.device.empty()) return "";
  const calibration::GpuSheet* recorded = calibration::find_gpu_sheet(events.device);
  if (recorded != nullptr && recorded == calibration::find_gpu_sheet(flags.gpu)) return "";
  if (recorded != nullptr && !flags.override_gpu)
    throw ConfigError(
        fmt::format("--gpu {}: {} was recorded on a \"{}\", {}; --override-gpu takes its times as those of the {} "
                    "nevertheless",
                    flags.gpu, events.file, events.device, flags_of(recorded, flags.catalog), flags.gpu));
  return fmt::format("recorded on \"{}\", by --gpu its times are taken as those of the {}", events.device, flags.gpu);
}

std::string report_of(const std::vector<traces::ProfilerEvents>& ranks,
                      const std::vector<traces::ProfilerImport>& imports) {
  report::Table table(
      {"file", ">rank", ">steps", ">step", ">compute", ">exposed comm.", ">overlapped", ">copies", ">idle"});
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const traces::ProfilerBreakdown& mean = imports[i].mean;
    const auto part = [&](double seconds) {
      return fmt::format("{} ({:.1f} %)", to_string(Seconds{seconds}), 100 * seconds / mean.step);
    };
    table.add({ranks[i].file, std::to_string(ranks[i].rank), std::to_string(imports[i].steps),
               to_string(Seconds{mean.step}), part(mean.compute), part(mean.exposed), part(mean.overlapped),
               part(mean.copies), part(mean.idle)});
  }
  std::string out = table.text(remark_width()) + "\n";
  const traces::TraceBatch& batch = imports.front().trace.batches.front();
  report::Table phases({"phase", ">mean", ">share of the step", ">kernels"});
  double wall = 0;
  for (const double step : batch.wall_s) wall += step;
  for (const traces::TracePhase& phase : batch.phases) {
    double sum = 0;
    for (const double time : phase.seconds) sum += time;
    phases.add({phase.name, to_string(Seconds{sum / static_cast<double>(batch.wall_s.size())}),
                fmt::format("{:.1f} %", 100 * sum / wall), std::to_string(phase.launches)});
  }
  out += phases.text(remark_width());
  std::int64_t bytes = 0;
  for (const traces::TraceBucket& bucket : batch.buckets) bytes += bucket.bytes;
  out += fmt::format("\ngradients: {} in {} all-reduces a step\n", to_string(Bytes{static_cast<double>(bytes)}),
                     batch.buckets.size());
  for (const std::string& note : imports.front().notes) out += "note: " + note + "\n";
  return out;
}

void run_import_profiler(const ProfilerFlags& flags, Shared& shared) {
  check_output(shared);
  traces::ProfilerOptions options;
  options.batch = flags.batch;
  options.model = flags.model;
  options.parameters = flags.parameters;
  if (!flags.layers.empty()) options.layers = load_layer_list(flags.layers);
  const std::string precision = !flags.precision.empty() ? flags.precision
                                : options.layers         ? options.layers->precision
                                                         : "fp32";
  options.device = roofline_device(catalog_gpu(flags.catalog, flags.gpu), precision);
  std::vector<traces::ProfilerEvents> ranks;
  std::vector<traces::ProfilerImport> imports;
  constexpr std::int64_t kMebibyte = 1 << 20;
  std::int64_t before = 0, all = 0;  // bytes of the files read so far, and of all files
  for (const std::string& file : flags.files) {
    std::error_code unreadable;  // read_profiler_events reports such a file
    const auto size = std::filesystem::file_size(file, unreadable);
    if (!unreadable) all += static_cast<std::int64_t>(size);
  }
  auto bar = progress_bar(shared, static_cast<std::size_t>(all / kMebibyte), "MiB read");
  for (const std::string& file : flags.files) {
    keep_input(shared, file);
    std::int64_t now = 0;
    ranks.push_back(traces::read_profiler_events(file, [&](std::int64_t bytes) {
      now = bytes;
      if (bar) bar(static_cast<std::size_t>((before + now) / kMebibyte));
    }));
    before += now;
    const std::string other_gpu = check_gpu(flags, ranks.back());
    imports.push_back(traces::import_profiler(ranks.back(), options));
    imports.back().trace.precision = precision;
    if (!other_gpu.empty()) imports.back().notes.push_back(other_gpu);
    ranks.back().gpu.clear();
    ranks.back().gpu.shrink_to_fit();
  }
  bar = {};
  remark(shared, report_of(ranks, imports));
  emit(shared, traces::write_step_trace(imports.front().trace));
}

void declare_import_profiler(Parser command, Shared& shared) {
  auto flags = std::make_shared<ProfilerFlags>();
  command
      .add_option("traces", flags->files,
                  "files that export_chrome_trace or tensorboard_trace_handler wrote, one for each rank")
      .required();
  command.add_option("--batch", flags->batch, "images on a GPU in a step")
      .required()
      .check(integer_between(1, 1 << 24));
  command.add_option("--gpu", flags->gpu, "the recorded GPU, as the catalog names it")
      .check(suggest("@rented-gpus"))
      .required();
  command.add_flag("--override-gpu", flags->override_gpu, "take --gpu although the trace names another GPU");
  command.add_option("--catalog", flags->catalog, "catalog that has the GPU")
      .check(suggest("@providers @files"))
      .capture_default_str();
  command.add_option("--model", flags->model, "name of the model").capture_default_str();
  command
      .add_option("--precision", flags->precision,
                  "precision of the recorded products; default: that of --layers, or fp32")
      .check(one_of({"fp32", "tf32", "bf16", "fp16"}));
  command
      .add_option("--parameters", flags->parameters,
                  "number of trainable parameters; needed if the trace has no all-reduce")
      .check(positive_integer());
  command
      .add_option(
          "--layers", flags->layers,
          "list of layers: FLOPs are counted, and each layer keeps its residual against the kernel model on other GPUs")
      .check(suggest("@layers @files"));
  add_output(command, shared);
  command.callback([flags, &shared] { run_import_profiler(*flags, shared); });
}

}  // namespace

Command import_profiler_command() {
  return {
      .name = "profiler",
      .summary = "a PyTorch profiler trace, as a step trace",
      .examples =
          "  ganymede import profiler rank0.json.gz --batch 64 --gpu A100-40GB -o trace.json\n"
          "  ganymede import profiler rank0.json rank1.json --batch 64 --gpu V100 --layers model.json -o trace.json\n"
          "  ganymede plan --trace trace.json --images 50000000 --gpu A100-40GB --deadline 60h\n",
      .about =
          "Turns the trace of torch.profiler into a step trace. Its steps are those of profiler.step(), its\n"
          "phases the outermost record_function() of that thread, its gradients the all-reduces of NCCL. If\n"
          "several ranks are given, the first becomes the trace and the others are compared with it. Time spent "
          "waiting for other ranks is removed, because simulations add their own. Files may\n"
          "be gzipped and are read as a stream.",
      .declare = declare_import_profiler};
}

}  // namespace ganymede::cli
