// ganymede import profiler: a PyTorch profiler trace as a step trace.

#include <fmt/format.h>

#include <memory>

#include "calibration/imported_traces.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::cli {
namespace {

void run_import_profiler(const calibration::ProfilerFiles& files, const Shared& shared) {
  check_output(shared);
  for (const std::string& file : files.files) keep_input(shared, file);
  const calibration::ImportedProfile made = calibration::import_profiles(
      files, [&](std::size_t mebibytes) { return progress_bar(shared, mebibytes, "MiB read"); }, remark_width());
  remark(shared, made.report);
  emit(shared, made.trace);
}

void declare_import_profiler(Parser command, Shared& shared) {
  auto flags = std::make_shared<calibration::ProfilerFiles>();
  command
      .add_option("traces", flags->files,
                  "files that export_chrome_trace or tensorboard_trace_handler wrote, one for each rank")
      .required();
  command.add_option("--batch", flags->batch, "images on a GPU in a step")
      .required()
      .check(integer_between(1, 1 << 24));
  command
      .add_option("--gpu", flags->gpu,
                  "the recorded GPU, as the catalog names it; needed if the trace does not name it")
      .check(suggest("@rented-gpus"));
  command.add_flag("--force", flags->override_gpu, "take --gpu although the trace names another GPU");
  command.add_flag("--override-gpu", flags->override_gpu, "the former name of --force").hidden();
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
  command
      .add_option_callback(
          "--max-size",
          [flags](const std::string& text) {
            try {
              flags->max_size = static_cast<std::int64_t>(parse_quantity<Bytes>(text).si);
            } catch (const std::invalid_argument& error) {
              throw ConfigError(fmt::format("--max-size {}: {}", text, error.what()));
            }
          },
          "bytes that a file may hold once it is inflated, such as 8GiB; else 64 MiB and 100 times its size")
      .type_name("SIZE");
  add_output(command, shared);
  command.callback([flags, &shared] { run_import_profiler(*flags, shared); });
}

}  // namespace

Command import_profiler_command() {
  return {
      .name = "profiler",
      .summary = "a PyTorch profiler trace, as a step trace",
      .examples =
          "  ganymede import profiler rank0.json.gz --batch 64 -o trace.json\n"
          "  ganymede import profiler rank0.json rank1.json --batch 64 --gpu V100 --layers model.json -o trace.json\n"
          "  ganymede plan --trace trace.json --images 50000000 --gpu A100-40GB --deadline 60h\n",
      .about =
          "Turns the trace of torch.profiler into a step trace. Its steps are those of profiler.step(), else\n"
          "those in which its kernels repeat, else the whole trace is one. Its phases are the outermost\n"
          "record_function() of that thread, its gradients the all-reduces of NCCL. If several ranks are\n"
          "given, the first becomes the trace and the others are compared with it. Time spent waiting for\n"
          "other ranks is removed, because simulations add their own. Files may be gzipped, lists of events\n"
          "or cut short, and are read as a stream.",
      .declare = declare_import_profiler};
}

}  // namespace ganymede::cli
